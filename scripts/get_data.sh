#!/usr/bin/env bash
# Gets corpora into $ZOO_DATA/NAME (default: the repository's datasets/NAME), each from the first source that has it:
#   1. $ZOO_DATA_MIRROR/NAME   a folder with the finished files
#   2. Debian packages         installed, or downloaded and unpacked without being installed (no root needed)
#   3. a public URL
#   4. scripts/data/make_NAME.py, which makes a synthetic corpus within half a minute (canvases, espeak: one or two)
# The script checks every file against scripts/data/SHA256SUMS and writes either a whole corpus or nothing. It leaves
# corpora alone that are already complete and correct. The pictures of canvases are checked against its images.sha256,
# which is itself checked first, and so are the recordings of fsdd, fsdd-strings and espeak with their recordings.sha256, and the
# chains of structures with the chains.sha256 that is made of them.
# debian-packages, messages-de-en, python-stdlib and espeak follow the release of Debian on the machine; their own folders
# have their SHA256SUMS, and SOURCES, which says what they were made from.
#
# Usage: scripts/get_data.sh NAME…        get these corpora
#        scripts/get_data.sh --list       list all corpora, and mark those that are already here
#        scripts/get_data.sh --help       print this text
#
# Environment: ZOO_DATA, ZOO_DATA_MIRROR. Exit code: 0 all corpora are in place, 2 bad input (unknown name, wrong
# checksum), 1 a source cannot be reached or the disk cannot be written.
set -euo pipefail

scripts=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
sums=$scripts/data/SHA256SUMS
data=${ZOO_DATA:-${scripts%/*}/datasets}
mirror=${ZOO_DATA_MIRROR:-}
names=(debian-packages dict-de-en messages-de-en fortunes tinyshakespeare wikitext-2 multi30k sst2 fashion-mnist
       fsdd nottingham python-stdlib proteins structures canvases fsdd-strings espeak listops associative-recall copy addition
       mad state-tracking mano depo pixels)
temp=''
trap 'if [[ -n $temp ]]; then rm -rf "$temp"; fi' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

say() { printf '%s\n' "$*" >&2; }
fail() {  # fail CODE MESSAGE
  say "get_data.sh: $2"
  exit "$1"
}

describe_corpus() {
  case $1 in
    fortunes) echo 'short English texts in labelled files (Debian: fortunes)' ;;
    dict-de-en) echo 'German-English sentences and phrases (Debian: trans-de-en)' ;;
    debian-packages) echo 'descriptions, sections and names of all packages that apt knows' ;;
    messages-de-en) echo 'German-English messages of programs (Debian: libreoffice-l10n-de, vlc-l10n and others)' ;;
    tinyshakespeare) echo '1.1 MB of Shakespeare' ;;
    wikitext-2) echo 'Wikipedia articles, 2 million words' ;;
    multi30k) echo '29,000 German-English captions' ;;
    sst2) echo '67,349 sentences with their sentiment (GLUE SST-2)' ;;
    fashion-mnist) echo '70,000 grey images in 10 classes (mirror only)' ;;
    nottingham) echo '1,034 folk tunes in ABC notation, as published and as texts to learn from' ;;
    python-stdlib) echo "the modules of this machine's Python, divided by module" ;;
    fsdd) echo '2,700 recordings of spoken digits (Free Spoken Digit Dataset)' ;;
    fsdd-strings) echo '4,800 strings of spoken digits, made of fsdd (synthetic)' ;;
    espeak) echo '3,400 sentences of fortunes, spoken by Debian'"'"'s espeak-ng' ;;
    proteins) echo '5,542 protein chains with their secondary structure (mirror only)' ;;
    structures) echo '526 protein chains in space, as PDB files (mirror only)' ;;
    canvases) echo '37,000 grey pictures with boxes around items of fashion-mnist (synthetic)' ;;
    listops) echo 'nested operations on lists of digits, with their values (synthetic)' ;;
    associative-recall) echo 'keys, values, and questions about them (synthetic)' ;;
    copy) echo 'strings to copy, and induction: what followed a mark (synthetic)' ;;
    addition) echo 'sums of two numbers (synthetic)' ;;
    mad) echo 'recall, fuzzy and noisy recall, selective copying, memorization (synthetic)' ;;
    state-tracking) echo 'parity, and products of permutations of five (synthetic)' ;;
    mano) echo 'expressions modulo 23, with their values (synthetic)' ;;
    pixels) echo '13,000 pictures of fashion-mnist as texts (synthetic)' ;;
    depo) echo 'circles of names, and who comes k steps later (synthetic)' ;;
    *) return 1 ;;
  esac
}

# The Debian package that the checksums were made from, as "package version".
known_package() {
  case $1 in
    fortunes) echo 'fortunes 1:1.99.1-7.3' ;;
    dict-de-en) echo 'trans-de-en 1.9-6' ;;
  esac
}

# Whether the content of corpus $1 follows the release of the machine.
follows_release() {
  [[ $1 == debian-packages || $1 == messages-de-en || $1 == python-stdlib || $1 == espeak ]]
}

# The files of corpus $1 that a script makes from the others, which a mirror or a URL has.
made_files() {
  case $1 in
    nottingham) printf '%s\n' {train,valid,test}.abc ;;
    proteins) printf '%s\n' structure.{train,strands,valid,test}.tsv ;;
    structures) echo chains.sha256 ;;
  esac
}
is_made() { made_files "$1" | grep -qx -- "$2"; }

# The packages with the message catalogues of messages-de-en. Those that a release lacks are left out.
catalogue_packages=(libreoffice-l10n-de vlc-l10n evolution-common gnucash-common audacity-data claws-mail-i18n krita-l10n
                    libgtk-3-common gnumeric-common pidgin-data gnome-control-center-data util-linux-locales
                    amule-common geany-common filezilla-common shotwell-common)

# The file names of corpus $1.
files_of() {
  case $1 in
    debian-packages) printf '%s\n' SOURCES {train,valid,test}.{txt,tsv,description,name} ;;
    espeak) printf '%s\n' SOURCES {train,valid,test}.tsv recordings.sha256 ;;
    messages-de-en) printf '%s\n' SOURCES {train,valid,test,words.train}.{de,en} ;;
    python-stdlib) printf '%s\n' SOURCES {train,valid,test}.jsonl ;;
    *) listed_files "$1" ;;
  esac
}
listed_files() { awk -v corpus="$1/" 'index($2, corpus) == 1 { print substr($2, length(corpus) + 1) }' "$sums"; }

# Prints which file of corpus $1 in folder $2 is missing or wrong; prints nothing if all are right. A corpus made from
# another version of its Debian package than the known one has its own list of checksums, as has one that follows the
# release.
first_wrong() {
  local list="$sums" file expected actual
  [[ -f $2/SHA256SUMS && -n $(known_package "$1") ]] && list=$2/SHA256SUMS
  if follows_release "$1"; then
    list=$2/SHA256SUMS
    [[ -f $list ]] || { echo "SHA256SUMS is missing"; return; }
  fi
  while read -r file; do
    [[ -f $2/$file ]] || { echo "$file is missing"; return; }
    expected=$(awk -v name="$1/$file" '$2 == name { print $1 }' "$list")
    actual=$(sha256sum <"$2/$file" | cut -d' ' -f1)
    [[ $actual == "$expected" ]] || { echo "$file has sha256 $actual instead of ${expected:-a known one}"; return; }
  done < <(files_of "$1")
  local many
  many=$(list_of_folders "$1")
  [[ -n $many ]] || return 0
  (cd "$2" && LC_ALL=C sha256sum --check --quiet "$many") 2>/dev/null |
    sed -n '1s/: FAILED.*/ is missing or damaged/p' || true
}
# The folders of corpus $1 with many files; nothing if it has none.
folders_of() {
  case $1 in
    canvases) echo images ;;
    fsdd | fsdd-strings | espeak) echo recordings ;;
    structures) printf '%s\n' train valid test ;;
  esac
}
# The file that lists them with their checksums.
list_of_folders() {
  case $1 in
    structures) echo chains.sha256 ;;
    *) folders_of "$1" | sed 's/$/.sha256/' ;;
  esac
}
# Whether the mirror has the recordings of fsdd as they are published, without lists.
has_published_fsdd() { [[ $name == fsdd && -n $mirror && -d $mirror/fsdd && ! -e $mirror/fsdd/train.tsv ]]; }

download() {  # download URL FILE
  if command -v curl >/dev/null; then
    curl --fail --silent --show-error --location --retry 2 --connect-timeout 20 --output "$2" "$1"
  else
    python3 -c 'import shutil, sys, urllib.request
with urllib.request.urlopen(sys.argv[1], timeout=20) as reply, open(sys.argv[2], "wb") as out:
    shutil.copyfileobj(reply, out)' "$1" "$2"
  fi 2>"$temp/error" || fail 1 "$name: cannot download $1 ($(tail -n 1 "$temp/error")); put the corpus into a \
folder $name and set ZOO_DATA_MIRROR to the folder above it"
}

# Whether this process may and did renew apt's lists of packages. Only root may.
update_lists() { [[ $(id -u) == 0 ]] && apt-get update >"$temp/error" 2>&1; }

# Downloads Debian packages into $temp. The download fails if apt's lists of packages are empty or outdated.
download_packages() {
  command -v apt-get >/dev/null || fail 1 "$name: needs Debian packages ($*), and this machine has no apt-get; \
set ZOO_DATA_MIRROR to a folder that has $name"
  fetch_debs() { (cd "$temp" && apt-get -o APT::Sandbox::User="$(id -un)" download "$@") >"$temp/error" 2>&1; }
  fetch_debs "$@" || { update_lists && fetch_debs "$@"; } ||
    fail 1 "$name: cannot download Debian packages ($(tail -n 1 "$temp/error")); run apt-get update as root, or set \
ZOO_DATA_MIRROR to a folder that has $name"
}

# Finds the files of Debian package $1: the installed ones if $2 exists, else unpacked into $temp/package. Sets
# package_root and package_version.
debian_package() {
  package_version=$(dpkg-query --show --showformat='${Version}' "$1" 2>/dev/null || true)
  if [[ -e $2 && -n $package_version ]]; then
    package_root=/
    return
  fi
  download_packages "$1"
  local deb
  deb=$(find "$temp" -maxdepth 1 -name '*.deb')
  package_version=$(dpkg-deb --field "$deb" Version)
  mkdir "$temp/package"
  dpkg-deb --extract "$deb" "$temp/package" || fail 2 "$name: $deb is damaged"
  package_root=$temp/package
}

# Writes what apt knows of all packages to $temp/available.
available_packages() {
  command -v apt-cache >/dev/null || fail 1 "$name: needs the lists of packages of apt, and this machine has no \
apt-cache; set ZOO_DATA_MIRROR to a folder that has $name"
  local least=10000  # without lists, apt knows the installed packages only
  enough() { apt-cache dumpavail >"$temp/available" 2>"$temp/error" && (($(grep -c '^Package:' "$temp/available") >= least)); }
  enough || { update_lists && enough; } || fail 1 "$name: apt has no lists of packages; run apt-get update as root, or \
set ZOO_DATA_MIRROR to a folder that has $name"
}

# Downloads the packages of messages-de-en that this release has, and unpacks their German catalogues into
# $temp/package/NAME.
catalogues() {
  available_packages
  local known=() unknown=() package deb
  for package in "${catalogue_packages[@]}"; do
    if grep -qx "Package: $package" "$temp/available"; then known+=("$package"); else unknown+=("$package"); fi
  done
  ((${#known[@]})) || fail 1 "$name: this release has none of the packages ${catalogue_packages[*]}"
  ((${#unknown[@]} == 0)) || say "$name: note: this release has no packages ${unknown[*]}"
  download_packages "${known[@]}"
  for deb in "$temp"/*.deb; do
    package=$(dpkg-deb --field "$deb" Package)
    dpkg-deb --show --showformat='${Package} ${Version}\n' "$deb" >>"$temp/files/SOURCES"
    mkdir -p "$temp/package/$package"
    # A package without such a file is no error.
    dpkg-deb --fsys-tarfile "$deb" |
      tar --extract --directory "$temp/package/$package" --wildcards '*/de/LC_MESSAGES/*.mo' 2>/dev/null || true
  done
}

# Makes corpus $name in $temp/files from its Debian package or public URL, or on the spot.
obtain() {
  local out=$temp/files file
  case $name in
    fortunes)
      debian_package fortunes /usr/share/games/fortunes
      python3 "$scripts/data/prepare_fortunes.py" "$package_root/usr/share/games/fortunes" "$out" 2>"$temp/error" ||
        fail 2 "$name: $(tail -n 1 "$temp/error")"
      ;;
    dict-de-en)
      debian_package trans-de-en /usr/share/trans/de-en
      python3 "$scripts/data/prepare_dict_de_en.py" "$package_root/usr/share/trans/de-en" "$out" 2>"$temp/error" ||
        fail 2 "$name: $(tail -n 1 "$temp/error")"
      ;;
    debian-packages)
      available_packages
      python3 "$scripts/data/prepare_debian_packages.py" "$out" <"$temp/available" 2>"$temp/error" ||
        fail 2 "$name: $(tail -n 1 "$temp/error")"
      (. /etc/os-release 2>/dev/null && echo "${PRETTY_NAME:-unknown system}") >"$out/SOURCES" || true
      sha256sum <"$temp/available" | sed 's/ .*/  apt-cache dumpavail/' >>"$out/SOURCES"
      ;;
    messages-de-en)
      catalogues
      python3 "$scripts/data/prepare_messages_de_en.py" "$temp/package" "$data/dict-de-en" "$out" 2>"$temp/error" ||
        fail 2 "$name: $(tail -n 1 "$temp/error")"
      ;;
    tinyshakespeare)
      download https://raw.githubusercontent.com/karpathy/char-rnn/master/data/tinyshakespeare/input.txt \
        "$out/input.txt"
      ;;
    wikitext-2)
      local examples=https://raw.githubusercontent.com/pytorch/examples/main
      for file in train valid test; do
        download "$examples/word_language_model/data/wikitext-2/$file.txt" "$out/wiki.$file.tokens"
      done
      ;;
    multi30k)
      for file in $(files_of multi30k); do
        download "https://raw.githubusercontent.com/multi30k/dataset/master/data/task1/raw/$file.gz" "$out/$file.gz"
        gunzip "$out/$file.gz" 2>/dev/null || fail 2 "$name: the downloaded $file.gz is not a gzip file"
      done
      ;;
    sst2)
      download https://dl.fbaipublicfiles.com/glue/data/SST-2.zip "$temp/SST-2.zip"
      python3 -c 'import sys, zipfile
archive = zipfile.ZipFile(sys.argv[1])
for name in ("train.tsv", "dev.tsv"):
    open(sys.argv[2] + "/" + name, "wb").write(archive.read("SST-2/" + name).replace(b" \t", b"\t"))' "$temp/SST-2.zip" "$out" 2>/dev/null ||
        fail 2 "$name: the downloaded SST-2.zip is not the archive of GLUE SST-2"
      ;;
    nottingham)
      local tunes=https://raw.githubusercontent.com/jukedeck/nottingham-dataset/master/ABC_cleaned
      for file in $(files_of nottingham); do
        is_made nottingham "$file" || download "$tunes/$file" "$out/$file"
      done
      ;;
    python-stdlib)
      python3 "$scripts/data/prepare_python_stdlib.py" "$out" 2>"$temp/error" || fail 2 "$name: $(tail -n 1 "$temp/error")"
      ;;
    fashion-mnist)
      fail 1 "$name: no public URL has these files (the published ones have the images in another order); set \
ZOO_DATA_MIRROR to a folder that has fashion-mnist/"
      ;;
    fsdd)
      local published=$mirror/fsdd
      if ! has_published_fsdd; then
        published=$temp/published
        mkdir "$published"
        download https://github.com/Jakobovski/free-spoken-digit-dataset/archive/refs/tags/v1.0.10.tar.gz \
          "$temp/fsdd.tar.gz"
        tar --extract --gzip --file "$temp/fsdd.tar.gz" --directory "$published" --strip-components 2 \
          --wildcards '*/recordings/*.wav' 2>/dev/null ||
          fail 2 "$name: the downloaded archive has no recordings"
      fi
      python3 "$scripts/data/prepare_fsdd.py" "$published" "$out" 2>"$temp/error" ||
        fail 2 "$name: $(tail -n 1 "$temp/error")"
      ;;
    espeak)
      command -v espeak-ng >/dev/null || fail 1 "$name: needs espeak-ng: run apt-get install espeak-ng as root"
      python3 "$scripts/data/make_espeak.py" "$data/fortunes" "$out" 2>"$temp/error" ||
        fail 2 "$name: $(tail -n 1 "$temp/error")"
      espeak-ng --version | sed 's/  Data at.*//' >"$out/SOURCES"
      ;;
    proteins | structures)
      fail 1 "$name: no public URL has these files; set ZOO_DATA_MIRROR to a folder that has $name/"
      ;;
    canvases | fsdd-strings | listops | associative-recall | copy | addition | mad | state-tracking | mano | depo | \
      pixels)
      source=scripts/data/make_${name//-/_}.py
      command -v python3 >/dev/null || fail 1 "$name: $source needs python3"
      local inputs=()
      [[ $name != canvases && $name != pixels ]] || inputs=("$data/fashion-mnist")
      [[ $name != fsdd-strings ]] || inputs=("$data/fsdd")
      python3 "$scripts/${source#scripts/}" "${inputs[@]}" "$out" 2>"$temp/error" ||
        fail 2 "$name: $(tail -n 1 "$temp/error")"
      ;;
  esac
}

# Writes the checksums of corpus $name, which is in $temp/files, into its folder.
write_sums() { (cd "$temp/files" && files_of "$name" | xargs sha256sum | sed "s|  |  $name/|" >SHA256SUMS); }

# Whether corpus $1 is in place or in the mirror.
is_available() { [[ -d $data/$1 && -z $(first_wrong "$1" "$data/$1") ]] || [[ -n $mirror && -d $mirror/$1 ]]; }

get() {
  local name=$1 target=$data/$1 wrong package_root='' package_version='' source file many
  describe_corpus "$name" >/dev/null || fail 2 "there is no corpus $name; there are: ${names[*]}"
  if [[ -d $target && -z $(first_wrong "$name" "$target") ]]; then
    say "$name: already in $target"
    return
  fi
  mkdir -p "$data" 2>/dev/null && temp=$(mktemp -d "$data/.get-$name.XXXXXX" 2>/dev/null) ||
    fail 1 "cannot write to $data; set ZOO_DATA to another folder"
  mkdir "$temp/files"
  if [[ -n $mirror && -d $mirror/$name ]] && ! has_published_fsdd; then
    source=$mirror/$name
    for file in $(files_of "$name") $(if follows_release "$name"; then echo SHA256SUMS; fi); do
      ! is_made "$name" "$file" || continue
      [[ -f $source/$file ]] || fail 2 "$name: $source/$file is missing"
      cp "$source/$file" "$temp/files/$file" 2>/dev/null || fail 1 "$name: cannot copy $source/$file to $data"
    done
    for many in $(folders_of "$name"); do
      cp -r "$source/$many" "$temp/files/$many" 2>/dev/null || fail 1 "$name: cannot copy $source/$many to $data"
    done
    chmod -R u+w "$temp/files"
  else
    source='its public URL'
    ! has_published_fsdd || source=$mirror/$name
    obtain
    [[ -z $package_version ]] || source="$(known_package "$name" | cut -d' ' -f1) $package_version"
    if follows_release "$name"; then
      source='this release of Debian'
      write_sums
    fi
  fi
  if [[ -n $(made_files "$name") ]]; then
    python3 "$scripts/data/prepare_$name.py" "$temp/files" "$temp/files" 2>"$temp/error" ||
      fail 2 "$name: $(tail -n 1 "$temp/error")"
  fi
  wrong=$(first_wrong "$name" "$temp/files")
  if [[ -n $wrong && -n $package_version && $source != "$(known_package "$name")" && $wrong != *missing ]]; then
    say "$name: note: made from $source; its files differ from those of $(known_package "$name")"
    write_sums
  elif [[ -n $wrong ]]; then
    fail 2 "$name: from $source: $wrong; nothing was changed"
  fi
  rm -rf "$target"
  mv "$temp/files" "$target" || fail 1 "$name: cannot write $target"
  rm -rf "$temp"
  temp=''
  say "$name: in $target, from $source"
}

[[ $# -gt 0 ]] || { sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//;p}' "${BASH_SOURCE[0]}" >&2; exit 2; }
case $1 in
  --help | -h) sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//;p}' "${BASH_SOURCE[0]}" ;;
  --list)
    for name in "${names[@]}"; do
      state=' '
      [[ -d $data/$name && -z $(first_wrong "$name" "$data/$name") ]] && state='*'
      printf '%s %-18s %s\n' "$state" "$name" "$(describe_corpus "$name")"
    done
    echo "(* = already in $data)"
    ;;
  -*) fail 2 "unknown option $1; see --help" ;;
  *)
    for argument in "$@"; do
      [[ $argument != messages-de-en ]] || get dict-de-en  # no sentence may be in one's training and the other's test data
      [[ $argument != canvases ]] || is_available canvases || get fashion-mnist  # canvases are made from its items
      [[ $argument != pixels ]] || is_available pixels || get fashion-mnist  # they are its pictures
      [[ $argument != fsdd-strings ]] || is_available fsdd-strings || get fsdd  # strings are made of its recordings
      [[ $argument != espeak ]] || is_available espeak || get fortunes          # its sentences are spoken
      get "$argument"
    done
    ;;
esac

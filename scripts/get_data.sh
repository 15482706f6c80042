#!/usr/bin/env bash
# Gets corpora into $ZOO_DATA/NAME (default: the repository's datasets/NAME), each from the first source that has it:
#   1. $ZOO_DATA_MIRROR/NAME   a folder with the finished files
#   2. a Debian package        installed, or downloaded and unpacked without being installed (no root needed)
#   3. a public URL
# The script checks every file against scripts/data/SHA256SUMS and writes either a whole corpus or nothing. It leaves
# corpora alone that are already complete and correct.
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
names=(fortunes dict-de-en tinyshakespeare wikitext-2 multi30k sst2 fashion-mnist)
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
    tinyshakespeare) echo '1.1 MB of Shakespeare' ;;
    wikitext-2) echo 'Wikipedia articles, 2 million words' ;;
    multi30k) echo '29,000 German-English captions' ;;
    sst2) echo '67,349 sentences with their sentiment (GLUE SST-2)' ;;
    fashion-mnist) echo '70,000 grey images in 10 classes (mirror only)' ;;
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

# The file names of corpus $1.
files_of() { awk -v corpus="$1/" 'index($2, corpus) == 1 { print substr($2, length(corpus) + 1) }' "$sums"; }

# Prints which file of corpus $1 in folder $2 is missing or wrong; prints nothing if all are right. A corpus made from
# another version of its Debian package than the known one has its own list of checksums.
first_wrong() {
  local list="$sums" file expected actual
  [[ -f $2/SHA256SUMS && -n $(known_package "$1") ]] && list=$2/SHA256SUMS
  while read -r file; do
    [[ -f $2/$file ]] || { echo "$file is missing"; return; }
    expected=$(awk -v name="$1/$file" '$2 == name { print $1 }' "$list")
    actual=$(sha256sum <"$2/$file" | cut -d' ' -f1)
    [[ $actual == "$expected" ]] || { echo "$file has sha256 $actual instead of ${expected:-a known one}"; return; }
  done < <(files_of "$1")
}

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

# Finds the files of Debian package $1: the installed ones if $2 exists, else unpacked into $temp/package. Sets
# package_root and package_version.
debian_package() {
  package_version=$(dpkg-query --show --showformat='${Version}' "$1" 2>/dev/null || true)
  if [[ -e $2 && -n $package_version ]]; then
    package_root=/
    return
  fi
  command -v apt-get >/dev/null || fail 1 "$name: needs the Debian package $1, and this machine has no apt-get; \
set ZOO_DATA_MIRROR to a folder that has it"
  mkdir "$temp/package"
  # The download fails if apt's list of packages is empty or outdated. Only root may update the list.
  local deb
  fetch_deb() { (cd "$temp" && apt-get -o APT::Sandbox::User="$(id -un)" download "$1") >"$temp/error" 2>&1; }
  if ! fetch_deb "$1"; then
    if [[ $(id -u) == 0 ]] && apt-get update >"$temp/error" 2>&1; then
      fetch_deb "$1" || true
    fi
  fi
  deb=$(find "$temp" -maxdepth 1 -name '*.deb')
  [[ -n $deb ]] || fail 1 "$name: cannot download the Debian package $1 ($(tail -n 1 "$temp/error")); run apt-get \
update as root, or set ZOO_DATA_MIRROR to a folder that has $name"
  package_version=$(dpkg-deb --field "$deb" Version)
  dpkg-deb --extract "$deb" "$temp/package" || fail 2 "$name: $deb is damaged"
  package_root=$temp/package
}

# Makes corpus $name in $temp/files from its Debian package or public URL.
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
    open(sys.argv[2] + "/" + name, "wb").write(archive.read("SST-2/" + name))' "$temp/SST-2.zip" "$out" 2>/dev/null ||
        fail 2 "$name: the downloaded SST-2.zip is not the archive of GLUE SST-2"
      ;;
    fashion-mnist)
      fail 1 "$name: no public URL has these files (the published ones have the images in another order); set \
ZOO_DATA_MIRROR to a folder that has fashion-mnist/"
      ;;
  esac
}

get() {
  local name=$1 target=$data/$1 wrong package_root='' package_version='' source file
  describe_corpus "$name" >/dev/null || fail 2 "there is no corpus $name; there are: ${names[*]}"
  if [[ -d $target && -z $(first_wrong "$name" "$target") ]]; then
    say "$name: already in $target"
    return
  fi
  mkdir -p "$data" 2>/dev/null && temp=$(mktemp -d "$data/.get-$name.XXXXXX" 2>/dev/null) ||
    fail 1 "cannot write to $data; set ZOO_DATA to another folder"
  mkdir "$temp/files"
  if [[ -n $mirror && -d $mirror/$name ]]; then
    source=$mirror/$name
    for file in $(files_of "$name"); do
      [[ -f $source/$file ]] || fail 2 "$name: $source/$file is missing"
      cp "$source/$file" "$temp/files/$file" 2>/dev/null || fail 1 "$name: cannot copy $source/$file to $data"
    done
    chmod -R u+w "$temp/files"
  else
    obtain
    source=${package_version:+"$(known_package "$name" | cut -d' ' -f1) $package_version"}
    source=${source:-its public URL}
  fi
  wrong=$(first_wrong "$name" "$temp/files")
  if [[ -n $wrong && -n $package_version && $source != "$(known_package "$name")" && $wrong != *missing ]]; then
    say "$name: note: made from $source; its files differ from those of $(known_package "$name")"
    (cd "$temp/files" && files_of "$name" | xargs sha256sum | sed "s|  |  $name/|" >SHA256SUMS)
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
      printf '%s %-16s %s\n' "$state" "$name" "$(describe_corpus "$name")"
    done
    echo "(* = already in $data)"
    ;;
  -*) fail 2 "unknown option $1; see --help" ;;
  *) for argument in "$@"; do get "$argument"; done ;;
esac

#!/usr/bin/env bash
# Makes the packages of the program from build/release, and tries each in a bare Debian: the package for Debian is installed
# with apt, the folder is only unpacked. Needs root and debootstrap (Debian's package), and some ten minutes.
#   scripts/check_packages.sh [SUITE]     Debian's release; default: that of this machine
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
suite=${1:-$(. /etc/os-release && echo "$VERSION_CODENAME")}
((EUID == 0)) || { echo "check_packages: a bare Debian needs root" >&2; exit 1; }
command -v debootstrap >/dev/null || { echo "check_packages: install debootstrap" >&2; exit 1; }
mirror=$(apt-get indextargets --format '$(SITE)' 'Created-By: Packages' | head -1)

packages=$root/build/release/packages
rm -rf "$packages"
for kind in DEB TGZ; do (cd build/release && cpack -G "$kind" >"$root/build/release/cpack-$kind.log") || {
  tail -20 "build/release/cpack-$kind.log" >&2
  exit 1
}; done
for file in "$packages"/*.deb "$packages"/*.tar.gz; do
  echo "$(basename "$file"): $(($(stat -c %s "$file") >> 20)) MiB"
done

work=$(mktemp -d)
leave() {
  umount -q "$work/bare/proc" "$work/unpacked/proc" || true
  rm -rf --one-file-system "$work"
}
trap leave EXIT
debootstrap --variant=minbase "$suite" "$work/bare" "$mirror" >"$work/debootstrap.log" 2>&1 || {
  tail -5 "$work/debootstrap.log" >&2
  exit 1
}
printf 'It was a dark night. The rain fell on the town, and nobody was out.\n%.0s' {1..80} >"$work/bare/text.txt"
cat >"$work/bare/try.sh" <<'TRY'
set -e
zoo --version
zoo config gpt2 >/dev/null
zoo train /text.txt --set training.steps=3 --set model.n_layers=1 --out /tmp/run --overwrite 2>/dev/null
zoo generate /tmp/run --prompt "It was" --max-new-tokens 8 --seed 1
TRY

# Programs find what is beside them through /proc.
cp -a "$work/bare" "$work/unpacked"
for system in bare unpacked; do mount --bind /proc "$work/$system/proc"; done
mkdir "$work/unpacked/opt/anywhere"
tar -xzf "$packages"/*.tar.gz -C "$work/unpacked/opt/anywhere"
folder=$(cd "$work/unpacked" && echo opt/anywhere/*)
[[ -e $work/unpacked/$folder/bin/zoo ]] || folder=opt/anywhere
chroot "$work/unpacked" env PATH="/$folder/bin:/usr/bin:/bin" sh /try.sh
echo "the folder runs in a bare Debian $suite"

cp "$packages"/*.deb "$work/bare/zoo.deb"
cp -a /etc/apt/. "$work/bare/etc/apt/"
cp -L /etc/resolv.conf /etc/hosts "$work/bare/etc/" 2>/dev/null || true
chroot "$work/bare" sh -c 'apt-get update && apt-get install -y --no-install-recommends /zoo.deb' >"$work/apt.log" 2>&1 || {
  tail -20 "$work/apt.log" >&2
  exit 1
}
chroot "$work/bare" sh /try.sh
echo "the package is installed in a bare Debian $suite"

#!/usr/bin/env bash
# Boots a small machine whose cgroups are all v2, gives a part of their tree to an ordinary user, and has our limits kept
# there: the test `cgroup` of the host crate, a fork bomb and a command that takes too much memory.
#
#   tests/real/cgroup-vm.sh
#
# Needs qemu-system-x86, busybox-static, util-linux, dpkg and curl (`apt-get install` knows all of them), and the network
# for a kernel; KERNEL_DEB=FILE takes another. Everything is kept in a temporary directory. Ends with 0 if all went as it
# should.
set -euo pipefail
cd "$(dirname "$0")/../.."

place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
for needed in qemu-system-x86_64 busybox setpriv dpkg-deb cpio; do
    command -v "$needed" >/dev/null || { echo "skipped: $needed is not installed"; exit 0; }
done

# Landlock alone can hold commands since 6.2, which Debian 12 has among its backports.
pool=${KERNEL_POOL:-http://deb.debian.org/debian}
if [ -z "${KERNEL_DEB:-}" ]; then
    file=$(curl -sf "$pool/dists/bookworm-backports/main/binary-amd64/Packages.xz" | xz -dc |
        sed -n 's/^Filename: \(.*linux-image-6[^ ]*-cloud-amd64_[^ ]*\.deb\)$/\1/p' | tail -n 1)
    KERNEL_DEB=$place/kernel.deb
    curl -sf -o "$KERNEL_DEB" "$pool/$file"
fi
dpkg-deb -x "$KERNEL_DEB" "$place/kernel"

cargo build --quiet --bin windlass
test=$(cargo test --quiet -p windlass-host --test cgroup --no-run --message-format=json |
    sed -n 's/.*"executable":"\([^"]*cgroup-[^"]*\)".*/\1/p' | tail -n 1)

root=$place/root
mkdir -p "$root"/{bin,usr/bin,lib64,proc,sys,dev,tmp,run,etc,new,home/user,var/tmp}
take() { # a program, and what it is linked with
    cp "$(readlink -f "$(type -P "$1")")" "$root/bin/${2:-$1}"
    strip "$root/bin/${2:-$1}" 2>/dev/null || true
    { ldd "$root/bin/${2:-$1}" 2>/dev/null || true; } | sed -n 's:.*\s\(/[^ ]*\).*:\1:p' | while read -r library; do
        mkdir -p "$root/$(dirname "$library")"
        cp -n "$(readlink -f "$library")" "$root/$library"
    done
}
for program in bash dash sleep head tail true setpriv seq; do take "$program"; done
take busybox
take target/debug/windlass windlass
take "$test" cgroup-test
ln -s dash "$root/bin/sh"
for program in bash dash sh sleep head tail true seq; do ln -s "../../bin/$program" "$root/usr/bin/$program"; done
printf 'root:x:0:0::/:/bin/sh\nuser:x:1000:1000::/home/user:/bin/sh\n' >"$root/etc/passwd"
cp tests/real/cgroup-vm-init.sh "$root/init"
chmod +x "$root/init"
(cd "$root" && find . | cpio --quiet -o -H newc | gzip -1) >"$place/initramfs"

# QEMU 7.2, without the help of a real processor, gets one instruction wrong that kernels can do without.
timeout "${SECONDS_AT_MOST:-300}" qemu-system-x86_64 -accel "${ACCEL:-tcg}" -cpu Nehalem,-cx16 -m 1024 -nographic -no-reboot \
    -net none -kernel "$place"/kernel/boot/vmlinuz-* -initrd "$place/initramfs" \
    -append "console=ttyS0 quiet nosoftlockup panic=-1 no_timer_check cgroup_no_v1=all" </dev/null | tee "$place/said"
grep -q '^all went as it should' "$place/said"

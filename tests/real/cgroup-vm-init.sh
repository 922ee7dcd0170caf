#!/bin/busybox sh
# The first process of the machine that cgroup-vm.sh boots.
export PATH=/bin:/usr/bin
if [ ! -e /moved ]; then
    # Commands cannot be held on the file system a kernel begins with.
    busybox mount -t tmpfs none /new
    for entry in bin usr lib lib64 etc home var init; do
        [ -e "/$entry" ] && busybox cp -a "/$entry" /new/
    done
    busybox mkdir -p /new/proc /new/sys /new/dev /new/tmp /new/run /new/new
    busybox touch /new/moved
    exec busybox switch_root /new /init
fi

busybox mount -t proc proc /proc
busybox mount -t sysfs sysfs /sys
busybox mount -t devtmpfs devtmpfs /dev
busybox mount -t tmpfs -o mode=1777 tmpfs /tmp
busybox chmod 1777 /var/tmp
busybox chown 1000:1000 /home/user
busybox mount -t cgroup2 cgroup2 /sys/fs/cgroup
echo "+memory +pids +cpu" >/sys/fs/cgroup/cgroup.subtree_control
export HOME=/home/user WINDLASS_HOME=/home/user/.windlass
cd /home/user
failed=

# given NUMBER COMMAND…: runs a command as the user, alone in a cgroup that was given to it.
given() {
    group=/sys/fs/cgroup/given-$1
    shift
    busybox mkdir "$group"
    busybox chown 1000 "$group" "$group/cgroup.procs" "$group/cgroup.subtree_control"
    busybox sh -c 'echo $$ >"$0/cgroup.procs"; exec /bin/setpriv --reuid 1000 --regid 1000 --clear-groups "$@"' "$group" "$@"
}

expect() { # expect WHAT VALUE WANTED
    echo "$1: $2"
    case $2 in
    $3) ;;
    *)
        echo "  but it should have been: $3"
        failed=1
        ;;
    esac
}

echo "== Linux $(busybox uname -r)"
expect "the doctor, in a cgroup of its own" "$(given 0 windlass doctor | busybox grep limits:)" "*by a cgroup of each command*"
expect "the doctor, among others" "$(/bin/setpriv --reuid 1000 --regid 1000 --clear-groups windlass doctor | busybox grep limits:)" "*remedy: systemd-run*"

given 1 cgroup-test --nocapture
expect "the test of the host, as a user" $? 0
busybox mkdir /sys/fs/cgroup/given-2
busybox sh -c 'echo $$ >/sys/fs/cgroup/given-2/cgroup.procs; exec cgroup-test --nocapture'
expect "the test of the host, as root" $? 0
cgroup-test --nocapture
expect "the test of the host, where it has to skip" $? 0

before=$(busybox ls /proc | busybox grep -c '^[0-9]')
given 3 windlass sandbox --limit pids=20 --limit wall_s=3 --json=/tmp/bomb -- bash -c 'b() { b | b & }; b; sleep 60' 2>/tmp/noise
expect "a fork bomb, its exit" $? "[1-9]*"
expect "a fork bomb, what is said of it" "$(busybox cat /tmp/bomb)" "*limit on processes was reached*cgroup*"
expect "processes more than before" "$(($(busybox ls /proc | busybox grep -c '^[0-9]') - before))" "[0-2]"

given 4 windlass sandbox --limit mem_mb=64 --json=/tmp/hog -- sh -c 'head -c 300000000 /dev/zero | tail >/dev/null; echo alive'
expect "too much memory, its exit" $? 137
expect "too much memory, what is said of it" "$(busybox cat /tmp/hog)" "*limit on memory was reached*"

left=$(busybox ls -d /sys/fs/cgroup/given-*/windlass-[0-9]* 2>/dev/null)
expect "cgroups of commands that are left" "${left:-none}" none
[ -z "$failed" ] && echo "all went as it should"
busybox poweroff -f

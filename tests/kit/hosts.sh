#!/usr/bin/env bash
# Hosts without sshd, for tests as root: a network namespace each behind one bridge. Host name, /dev/shm,
# /var/tmp and IPC are private to what `on` starts. $HOSTS_TAG tells several sets of hosts apart.
#   hosts.sh up N | down | on I COMMAND... | cut I | mend I | pids I | agent [SSH OPTIONS] HOST COMMAND...
# `agent` stands in for ssh: PRTE_MCA_plm_ssh_agent="hosts.sh agent".
set -euo pipefail
tag=${HOSTS_TAG:-mtf}
net=10.77.0
on() {
    local i=$1
    shift
    exec ip netns exec "$tag$i" unshare --uts --ipc --mount sh -c \
        'hostname "$0"; mount -t tmpfs tmpfs /dev/shm; mount -t tmpfs tmpfs /var/tmp; exec "$@"' "${NAME_OF_ALL:-node$i}" "$@"
}
case $1 in
up)
    ip netns add "$tag-s"
    ip -n "$tag-s" link add br0 type bridge
    ip -n "$tag-s" link set br0 up
    for i in $(seq "$2"); do
        mkdir -p "/etc/netns/$tag$i"
        {
            echo "127.0.0.1 localhost"
            for k in $(seq "$2"); do echo "$net.$k node$k"; done
        } >"/etc/netns/$tag$i/hosts"
        ip netns add "$tag$i"
        ip -n "$tag-s" link add "p$i" type veth peer name eth0 netns "$tag$i"
        ip -n "$tag-s" link set "p$i" master br0 up
        ip -n "$tag$i" addr add "$net.$i/24" dev eth0
        ip -n "$tag$i" link set lo up
        ip -n "$tag$i" link set eth0 up
    done
    ;;
down)
    for ns in $(ip netns list | awk '{print $1}' | grep "^$tag"); do
        for pid in $(ip netns pids "$ns"); do kill -9 "$pid" 2>/dev/null || true; done
        ip netns del "$ns"
        rm -rf "/etc/netns/$ns"
    done
    ;;
on)
    shift
    on "$@"
    ;;
cut) ip -n "$tag-s" link set "p$2" down ;;
mend) ip -n "$tag-s" link set "p$2" up ;;
pids) ip netns pids "$tag$2" ;;
agent)
    shift
    while [ "${1#-}" != "$1" ]; do shift; done
    host=${1#node}
    shift
    on "$host" sh -c "$*"
    ;;
esac

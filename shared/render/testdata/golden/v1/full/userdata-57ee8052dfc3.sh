#!/bin/bash
# The files and commands of a pool's nodes.
set -o errexit -o nounset -o pipefail

work=$(mktemp --directory)
trap 'rm --recursive --force "$work"' EXIT

# place PATH MODE CONTENT; nobody else reads the file before it has its mode.
place() {
  mkdir --parents -- "${1%/*}/"
  (umask 077 && printf '%s' "$3" >"$1")
  chmod -- "$2" "$1"
}

# run NUMBER COMMAND
run() {
  local status=0
  printf '%s\n' "$2" >"$work/command"
  bash -o errexit -o pipefail "$work/command" || status=$?
  [ "$status" -eq 0 ] || echo "drover: command $1 failed with status $status" >&2
  return "$status"
}

place '/etc/motd' '0644' 'it'\''s "$HOME" `here`
and there
'
place '/etc/drover/secret' '0400' 'no newline at the end'
run '1' 'sysctl --write vm.max_map_count=262144'
run '2' 'for i in 1 2; do
  echo "$i"
done'

# SPDX-License-Identifier: MIT
# bash completion for steelyard(8): commands, their options, services and backends out of the pinned maps.

# Strings of one key in the JSON of a reading command; nothing when it fails.
_steelyard_names() {
	local key=$1
	shift
	steelyard "${pass[@]}" --json "$@" 2>/dev/null | sed -n "s/^.*\"$key\":[[:space:]]*\"\(.*\)\",\{0,1\}\$/\1/p" | sort -u
}

# Offer words of which the current one is a beginning. Readline takes what is behind the last : or @ for the word, so
# the part before it is cut off from what is offered.
_steelyard_offer() {
	local word before=
	[[ $cur == *[:@]* ]] && before=${cur%"${cur##*[:@]}"}
	for word in "$@"; do
		[[ $word == "$cur"* ]] && COMPREPLY+=("${word#"$before"}")
	done
}

_steelyard() {
	local commands="status services backends table flows stats dump drain evict enable reload detach preflight decode help version"
	local kinds="verdict reason state line-state counter event word backend-word endpoint-word table-word line-word next-hop isn
		backend-flags iface-flags"
	local line=${COMP_LINE:0:COMP_POINT} cur= prev= command= i n=0 service=
	local -a words pass=() options=(--pin-dir --control --json --help --version)

	COMPREPLY=()
	read -ra words <<<"$line"
	[[ $line == *[[:space:]] ]] || { cur=${words[-1]}; unset 'words[-1]'; }
	for ((i = 1; i < ${#words[@]}; i++)); do
		prev=
		case ${words[i]} in
		--pin-dir | --control)
			prev=${words[i]}
			[ $((i + 1)) -lt ${#words[@]} ] && pass+=("${words[i]}" "${words[i + 1]}") && prev=
			i=$((i + 1))
			;;
		--service | --backend | --client | --limit | --deadline)
			[ $((i + 1)) -lt ${#words[@]} ] || prev=${words[i]}
			i=$((i + 1))
			;;
		--pin-dir=* | --control=*) pass+=("${words[i]}") ;;
		-*) ;;
		*)
			if [ -z "$command" ]; then
				command=${words[i]}
			else
				n=$((n + 1))
				[ $n = 1 ] && service=${words[i]}
			fi
			;;
		esac
	done

	case $prev in
	--pin-dir) compopt -o dirnames; return ;;
	--control) compopt -o default; return ;;
	--service) _steelyard_offer $(_steelyard_names service services); return ;;
	--backend) _steelyard_offer $(_steelyard_names address backends); return ;;
	--deadline) _steelyard_offer 30s 1m 5m; return ;;
	--client | --limit) return ;;
	esac
	case $command in
	flows) options+=(--service --backend --client --limit) ;;
	stats) options+=(--all) ;;
	dump) options+=(--maps --all) ;;
	drain) options+=(--wait --deadline) ;;
	detach) options+=(--force) ;;
	esac
	if [[ $cur == -* ]]; then
		_steelyard_offer "${options[@]}"
		return
	fi
	case $command:$n in
	:*) _steelyard_offer $commands ;;
	backends:0 | table:0 | drain:0 | evict:0 | enable:0) _steelyard_offer $(_steelyard_names service services) ;;
	drain:1 | evict:1 | enable:1) _steelyard_offer $(_steelyard_names address backends "$service") ;;
	preflight:0) _steelyard_offer $(cd /sys/class/net && echo *) ;;
	decode:0) _steelyard_offer $kinds ;;
	help:0) _steelyard_offer $commands ;;
	esac
}
complete -F _steelyard steelyard

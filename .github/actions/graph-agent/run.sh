#!/usr/bin/env bash
# Runs one turn of graph-agent with the inputs of action.yml, which come as environment variables. If it ends with 3 or 4, it posts
# what waits for a person as a comment, with the commands that answer it. Needs graph-agent, and gh for the comment.
set -uo pipefail

thread=${RESUME:-$THREAD}
arguments=()
if [ -n "${RESUME:-}" ]; then arguments+=("--resume=$RESUME"); else arguments+=("--thread=$THREAD"); fi
[ -z "${APPROVE:-}" ] || arguments+=("--approve=$APPROVE")
[ -z "${REJECT:-}" ] || arguments+=("--reject=$REJECT")
while IFS= read -r argument; do [ -z "$argument" ] || arguments+=("$argument"); done <<<"${ARGUMENTS:-}"
[ -z "${PROMPT:-}" ] || arguments+=(-- "$PROMPT")

token=${GH_TOKEN:-}
unset GH_TOKEN # The agent needs no access to the repository's API.
graph-agent run "${arguments[@]}" </dev/null
code=$?
printf 'exit-code=%s\nthread=%s\n' "$code" "$thread" >>"${GITHUB_OUTPUT:-/dev/null}"

case $code in
3) title="graph-agent needs an approval" pending=$(graph-agent approvals list --thread "$thread") ;;
4) title="graph-agent needs a decision about interrupted calls" pending=$(graph-agent recover "$thread") ;;
*) exit "$code" ;;
esac

comment=$(mktemp)
trap 'rm -f "$comment"' EXIT
{
    printf '**%s** (thread `%s`)\n\n' "$title" "${thread//\`/}"
    # What the model wrote stays text: it cannot end the block.
    printf '~~~~text\n%s\n~~~~\n\n' "${pending//\~\~\~/~ ~ ~}"
    printf 'Answer where the database of this run is available:\n\n~~~~sh\n'
    if [ "$code" = 3 ]; then
        printf 'graph-agent run --resume %q --approve all\n' "$thread"
        printf 'graph-agent run --resume %q --reject all --reason TEXT\n' "$thread"
    else
        printf 'graph-agent recover %q --retry CALL    # or --done CALL --result TEXT, or --cancel CALL\n' "$thread"
        printf 'graph-agent run --resume %q\n' "$thread"
    fi
    printf '~~~~\n'
} >"$comment"
if [ -n "${ISSUE:-}" ]; then
    GH_TOKEN=$token gh issue comment "$ISSUE" --body-file "$comment"
else
    cat "$comment"
fi

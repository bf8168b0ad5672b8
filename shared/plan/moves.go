package plan

// The order in which service accounts move from one stack to another. EKS has at most one association for a service account, so the stack
// that has it must delete it before another one can have it.
// https://docs.aws.amazon.com/eks/latest/APIReference/API_CreatePodIdentityAssociation.html

import (
	"fmt"
	"slices"
	"strings"

	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/status"
)

// associated returns the service accounts that a stack of a spec has associations for, as namespace/name. It returns none for nil.
func associated(stack string, c *api.Cluster) (accounts []string) {
	if c == nil || !c.HasAddon(api.PodIdentityAgent) {
		return nil
	}
	if stack == names.Identities {
		for _, identity := range c.Spec.PodIdentities {
			accounts = append(accounts, identity.Namespace+"/"+identity.ServiceAccount)
		}
		return accounts
	}
	for _, addon := range c.Spec.Addons {
		if api.NodesNeed(addon.Name) == (stack == names.Addons) {
			accounts = append(accounts, addon.Accounts()...)
		}
	}
	return accounts
}

// moved returns the service accounts whose associations move from one stack to another.
func (in Input) moved(from, to string) (accounts []string) {
	had, has := associated(from, in.Old[from]), associated(from, in.New)
	old := associated(to, in.Old[to])
	for _, account := range associated(to, in.New) {
		if slices.Contains(had, account) && !slices.Contains(has, account) && !slices.Contains(old, account) {
			accounts = append(accounts, account)
		}
	}
	return accounts
}

// orderMoves makes the stack that gets service accounts wait for the stack that has them: it changes in the next round. Two stacks cannot
// swap accounts.
func (in Input) orderMoves(p *Plan) {
	for i := range p.Changes {
		to := &p.Changes[i]
		for _, from := range []string{names.Addons, names.NodeAddons, names.Identities} {
			if _, changes := p.Find(from); !changes || !hasAssociations(to.Stack) || from == to.Stack {
				continue
			}
			accounts := in.moved(from, to.Stack)
			if len(accounts) == 0 {
				continue
			}
			if back := in.moved(to.Stack, from); len(back) > 0 && from < to.Stack { // one refusal for both directions
				p.Refused = append(p.Refused, status.Reason{
					Field: "podIdentities", Old: strings.Join(accounts, ", ") + " of " + source(from),
					New: fmt.Sprintf("%s (%s moves to where the other comes from, and EKS allows one role for each service account: move them "+
						"in two edits)", source(to.Stack), strings.Join(back, ", ")),
				})
				continue
			}
			if to.After = from; stage(to.Stack) > stage(from) {
				to.After = ""
				continue // the machine changes it later anyway
			}
			to.Reasons = append(slices.Clone(to.Reasons), status.Reason{
				Field: "after stack " + names.Stack(in.Cluster, from), Old: strings.Join(accounts, ", ") + " of " + source(from), New: source(to.Stack),
			})
		}
	}
}

func hasAssociations(stack string) bool {
	return stack == names.Addons || stack == names.NodeAddons || stack == names.Identities
}

// waits reports whether a change waits for that of another stack.
func (p Plan) waits(c Change) bool {
	_, found := p.Find(c.After)
	return c.After != "" && found
}

package cli

// Shell completion of names. Candidates come from the account, so each one costs a call or two and has a short timeout.

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/names"
)

// completionTimeout bounds how long a user waits after pressing the tab key.
const completionTimeout = 3 * time.Second

// completer lists the candidates of one argument. The arguments before it are args.
type completer func(ctx context.Context, c *Cell, args []string) ([]string, error)

// completeArgs completes a command's arguments, the first with the first completer and so on. Further arguments have no candidates.
func completeArgs(completers ...completer) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) >= len(completers) {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return candidates(cmd.Context(), completers[len(args)], args, typed), cobra.ShellCompDirectiveNoFileComp
	}
}

// completeFlag registers how the values of a flag are completed.
func completeFlag(cmd *cobra.Command, flag string, complete cobra.CompletionFunc) {
	if err := cmd.RegisterFlagCompletionFunc(flag, complete); err != nil {
		panic(err) // the flag does not exist, or was registered twice
	}
}

// completeFlagNames registers a completer for the values of a flag.
func completeFlagNames(cmd *cobra.Command, flag string, complete completer) {
	completeFlag(cmd, flag, func(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return candidates(cmd.Context(), complete, args, typed), cobra.ShellCompDirectiveNoFileComp
	})
}

// completeSpecFiles completes an argument that names the file of a spec.
func completeSpecFiles(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return []cobra.Completion{"yaml"}, cobra.ShellCompDirectiveFilterFileExt
}

// candidates lists candidates from the account. A shell shows no errors during completion, so a failure means no candidates.
// BASH_COMP_DEBUG_FILE receives the error.
func candidates(ctx context.Context, list completer, args []string, typed string) []cobra.Completion {
	ctx, cancel := context.WithTimeout(ctx, completionTimeout)
	defer cancel()
	c, err := openCell(ctx)
	if err != nil {
		cobra.CompDebugln(err.Error(), false)
		return nil
	}
	all, err := list(ctx, c, args)
	if err != nil {
		cobra.CompDebugln(err.Error(), false)
		return nil
	}
	var matching []cobra.Completion
	for _, name := range all {
		if strings.HasPrefix(name, typed) {
			matching = append(matching, name)
		}
	}
	return matching
}

// clusterNames lists the clusters that have a status.
func clusterNames(ctx context.Context, c *Cell, _ []string) ([]string, error) {
	entries, err := c.State.List(ctx, names.Statuses)
	if err != nil {
		return nil, err
	}
	var all []string
	for _, entry := range entries {
		if name, ok := strings.CutSuffix(strings.TrimPrefix(entry.Key, names.Statuses), ".json"); ok {
			all = append(all, name)
		}
	}
	return all, nil
}

// deletable lists what delete deletes: clusters, and the files of rollouts and freezes.
func deletable(ctx context.Context, c *Cell, args []string) ([]string, error) {
	all, err := clusterNames(ctx, c, args)
	if err != nil {
		return nil, err
	}
	for kind, nameOf := range map[string]func(string) (string, bool){"rollout": names.RolloutOfKey, "freeze": names.FreezeOfKey} {
		entries, err := c.Specs.List(ctx, kind+"s/")
		if err != nil {
			return nil, err
		}
		for _, entry := range entries {
			if name, ok := nameOf(entry.Key); ok {
				all = append(all, kind+"/"+name)
			}
		}
	}
	slices.Sort(all)
	return all, nil
}

// poolNames lists the pools of the cluster in the first argument, by its stacks.
func poolNames(ctx context.Context, c *Cell, args []string) ([]string, error) {
	cluster, err := c.State.Status(ctx, args[0])
	if err != nil {
		return nil, err
	}
	var all []string
	for _, stack := range cluster.Status.Stacks {
		if pool, ok := strings.CutPrefix(stack.Name, names.PoolPrefix); ok {
			all = append(all, pool)
		}
	}
	return all, nil
}

// releaseNames lists the uploaded releases.
func releaseNames(ctx context.Context, c *Cell, _ []string) ([]string, error) {
	entries, err := c.Specs.List(ctx, names.ReleaseSpecs)
	if err != nil {
		return nil, err
	}
	var all []string
	for _, entry := range entries {
		if name, ok := names.ReleaseOfKey(entry.Key); ok && name != api.ChannelsName {
			all = append(all, name)
		}
	}
	return all, nil
}

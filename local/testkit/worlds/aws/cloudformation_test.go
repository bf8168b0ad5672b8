package aws_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	cloudformationapi "github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/resourcegroupstaggingapi"
	"github.com/stretchr/testify/require"

	localcloudformation "github.com/drover-run/drover/local/aws/cloudformation"
	"github.com/drover-run/drover/local/engine/endpoint"
	"github.com/drover-run/drover/local/engine/resource"
	"github.com/drover-run/drover/local/engine/wire"
	"github.com/drover-run/drover/local/testkit/harness"
	"github.com/drover-run/drover/shared/aws/cloudformation"
	"github.com/drover-run/drover/shared/fault"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/plan"
	"github.com/drover-run/drover/shared/stack"
)

// world is CloudFormation with stacks of log groups.
type world struct {
	*harness.Account
	*cloudformation.Stacks
	t *testing.T
}

func newWorld(t *testing.T) world {
	a := harness.Start(t)
	cfg := a.Config()
	s := cloudformation.New(
		cloudformationapi.NewFromConfig(cfg), resourcegroupstaggingapi.NewFromConfig(cfg), names.RoleARN("aws", harness.ID, harness.Region,
			"cloudformation"),
	)
	s.Pause = time.Millisecond
	return world{a, s, t}
}

// groups is a template of log groups. CloudFormation's role may create them because they are named like those of clusters.
func groups(prefix string, count, days int) string {
	body := "Parameters:\n  P: {Type: String, Default: p}\nResources:\n"
	for i := range count {
		body += fmt.Sprintf("  %s%d:\n    Type: AWS::Logs::LogGroup\n    Properties: {LogGroupName: {'Fn::Sub': "+
			"'/aws/eks/${AWS::StackName}/%[1]s%[2]d'}, RetentionInDays: %[3]d}\n", prefix, i, days)
	}
	return body + "Outputs:\n  O: {Value: o}\n"
}

// change stores a template and returns a change of a stack to it, with the template's URL.
func (w world) change(stackName, template string, tags map[string]string) (plan.Change, string) {
	w.t.Helper()
	key := names.Template([]byte(template))
	_, err := w.State().Put(w.t.Context(), key, []byte(template))
	require.NoError(w.t, err)
	url := fmt.Sprintf("https://%s.s3.%s.amazonaws.com/%s", harness.StateBucket, harness.Region, key)
	return plan.Change{StackName: stackName, Checksum: names.SHA256([]byte(template)), Tags: tags}, url
}

// apply creates and executes a change set and waits for the stack.
func (w world) apply(stackName, template, token string, tags map[string]string) stack.Deployed {
	w.t.Helper()
	now, err := w.Describe(w.t.Context(), stackName)
	require.NoError(w.t, err)
	change, url := w.change(stackName, template, tags)
	set, err := w.CreateChangeSet(w.t.Context(), change, stack.Absent(now.Status), url, map[string]string{"P": "v"}, token)
	require.NoError(w.t, err)
	require.NoError(w.t, w.Execute(w.t.Context(), change, set, token))
	w.wait(stackName)
	now, err = w.Describe(w.t.Context(), stackName)
	require.NoError(w.t, err)
	return now
}

func (w world) wait(stackName string) {
	w.t.Helper()
	_, err := w.CloudFormation.Wait(w.t.Context(), stackName)
	require.NoError(w.t, err)
}

func TestStackLifecycle(t *testing.T) {
	w, ctx := newWorld(t), t.Context()
	const name = "drover-demo-pool-a"
	absent, err := w.Describe(ctx, name)
	require.NoError(t, err)
	require.Zero(t, absent)

	tags := map[string]string{names.TagCluster: "demo", names.TagStack: "pool-a", names.TagChecksum: "1"}
	made := w.apply(name, groups("A", 2, 7), "create-1", tags)
	require.Contains(t, made.ID, ":stack/"+name+"/")
	require.Equal(t, stack.Deployed{
		Name: "pool-a", ID: made.ID, Status: "CREATE_COMPLETE", Tags: tags, Outputs: map[string]string{"O": "o"},
		Parameters: map[string]string{"P": "v"},
	}, made)

	require.NoError(t, w.Protect(ctx, name, true))
	now, err := w.Describe(ctx, name)
	require.NoError(t, err)
	require.True(t, now.TerminationProtection)
	require.ErrorContains(t, w.Delete(ctx, name, "delete-1"), "TerminationProtection")
	require.NoError(t, w.Protect(ctx, name, false))

	for token, began := range map[string]bool{"create-1": true, "delete-1": false, "delete-2": false} {
		got, err := w.HasBegun(ctx, name, token)
		require.NoError(t, err)
		require.Equal(t, began, got, token)
	}
	require.NoError(t, w.Delete(ctx, name, "delete-2"))
	w.Until("it is deleted", func() bool { return w.Account.Stacks("demo")["pool-a"] == "" })
	absent, err = w.Describe(ctx, name)
	require.NoError(t, err)
	require.Zero(t, absent)
	began, err := w.HasBegun(ctx, name, "delete-2")
	require.NoError(t, err)
	require.False(t, began, "a deleted stack is not found by name")
	failure, err := w.WhyFailed(ctx, name)
	require.NoError(t, err)
	require.Zero(t, failure)
	require.NoError(t, w.Delete(ctx, name, "delete-3"), "a second deletion is no error")
}

func TestChangeSets(t *testing.T) {
	w, ctx := newWorld(t), t.Context()
	const name = "drover-demo-network"
	one := groups("A", 1, 7)
	w.apply(name, one, "create-1", nil)

	t.Run("are reported empty and deleted when nothing differs", func(t *testing.T) {
		change, url := w.change(name, one, nil)
		set, err := w.CreateChangeSet(ctx, change, false, url, map[string]string{"P": "v"}, "update-1")
		require.NoError(t, err)
		require.True(t, set.Empty)
		sets, err := w.CloudFormation.ListChangeSets(ctx, w.Admin(), &localcloudformation.StackPageInput{StackName: name})
		require.NoError(t, err)
		require.Empty(t, sets.Summaries)
	})
	t.Run("are refused with CloudFormation's reason", func(t *testing.T) {
		bad := strings.Replace(one, "RetentionInDays: 7", "Retention: 7", 1)
		change, url := w.change(name, bad, nil)
		for range 2 { // the failed one does not block its name
			_, err := w.CreateChangeSet(ctx, change, false, url, nil, "update-2")
			require.Contains(t, []string{"ChangeRefused", "Internal"}, fault.NameOf(err))
			require.ErrorContains(t, err, "Retention")
		}
	})
	t.Run("replace the one of an earlier attempt", func(t *testing.T) {
		change, url := w.change(name, groups("A", 2, 7), nil)
		_, err := w.CreateChangeSet(ctx, change, false, url, map[string]string{"P": "old"}, "update-4")
		require.NoError(t, err)
		set, err := w.CreateChangeSet(ctx, change, false, url, map[string]string{"P": "new"}, "update-4")
		require.NoError(t, err)
		require.NoError(t, w.Execute(ctx, change, set, "update-4"))
		w.wait(name)
		now, err := w.Describe(ctx, name)
		require.NoError(t, err)
		require.Equal(t, "new", now.Parameters["P"])
	})
	t.Run("do not replace one of another lease holder", func(t *testing.T) {
		change, url := w.change(name, groups("A", 2, 14), nil)
		theirs, err := w.CreateChangeSet(ctx, change, false, url, map[string]string{"P": "new"}, "update-theirs")
		require.NoError(t, err)
		late, err := w.CreateChangeSet(ctx, change, false, url, map[string]string{"P": "late"}, "update-late")
		require.NoError(t, err)
		require.NoError(t, w.Execute(ctx, change, theirs, "update-theirs"))
		w.wait(name)
		now, err := w.Describe(ctx, name)
		require.NoError(t, err)
		require.Equal(t, "new", now.Parameters["P"])
		require.Error(t, w.Execute(ctx, change, late, "update-late"), "CloudFormation deleted it with theirs")
	})
	t.Run("fail as Transient while an earlier attempt is in flight", func(t *testing.T) {
		change, url := w.change(name, groups("A", 3, 7), nil)
		_, err := w.CreateChangeSet(ctx, change, false, url, map[string]string{"P": "old"}, "update-5")
		require.NoError(t, err)
		w.OnCall(func(call endpoint.Call) error {
			if call.Action == "DeleteChangeSet" {
				return &wire.Error{
					Code: "InvalidChangeSetStatus", Message: "cannot be deleted in its current status of [CREATE_IN_PROGRESS]", Status: 400,
				}
			}
			return nil
		})
		defer w.OnCall(nil)
		_, err = w.CreateChangeSet(ctx, change, false, url, map[string]string{"P": "new"}, "update-5")
		require.Equal(t, "Transient", fault.NameOf(err))
	})
	t.Run("have the changes of all pages", func(t *testing.T) {
		change, url := w.change("drover-demo-large", groups("L", 130, 7), nil)
		set, err := w.CreateChangeSet(ctx, change, true, url, nil, "create-2")
		require.NoError(t, err)
		require.Len(t, set.Changes, 130)
		require.Equal(t, stack.ActionAdd, set.Changes[0].Action)
		require.NoError(t, w.Execute(ctx, change, set, "create-2"))
		w.wait("drover-demo-large")
		began, err := w.HasBegun(ctx, "drover-demo-large", "create-2")
		require.NoError(t, err)
		require.True(t, began)
	})
	t.Run("fail for a stack in another state", func(t *testing.T) {
		change, url := w.change("drover-demo-absent", one, nil)
		_, err := w.CreateChangeSet(ctx, change, false, url, nil, "update-7")
		require.ErrorContains(t, err, "does not exist")
		change, url = w.change(name, one, nil)
		_, err = w.CreateChangeSet(ctx, change, true, url, nil, "create-3")
		require.ErrorContains(t, err, "already exists")
	})
}

func TestStackOperation(t *testing.T) {
	w, ctx := newWorld(t), t.Context()
	const name = "drover-demo-network"
	none, err := w.Operation(ctx, name)
	require.NoError(t, err)
	require.Zero(t, none)

	var during cloudformation.Operation
	w.OnResource(func(step string, r resource.Request) error {
		if step == "create" && r.LogicalID == "A1" {
			during, err = w.Operation(ctx, name)
		}
		return err
	})
	w.apply(name, strings.Replace(groups("A", 2, 7), "  A1:\n", "  A1:\n    DependsOn: A0\n", 1), "create-1", nil)
	require.Equal(t, cloudformation.Operation{Began: during.Began, Token: "create-1", Done: 1, InProgress: []string{"A1"}}, during)
	require.False(t, during.Began.IsZero())

	w.apply(name, strings.Replace(groups("A", 2, 14), "  A1:\n", "  A1:\n    DependsOn: A0\n", 1), "update-1", nil)
	after, err := w.Operation(ctx, name)
	require.NoError(t, err)
	require.Equal(t, cloudformation.Operation{Began: after.Began, Token: "update-1", Done: 2}, after, "the creation does not count")
}

func TestStackWhyFailed(t *testing.T) {
	w, ctx := newWorld(t), t.Context()
	const name = "drover-demo-network"
	fail := func(step, logicalID, message string) {
		w.OnResource(func(s string, r resource.Request) error {
			if s == step && r.LogicalID == logicalID {
				return &wire.Error{Code: "LimitExceeded", Message: message, Status: 400}
			}
			return nil
		})
	}

	t.Run("is empty after a success", func(t *testing.T) {
		w.apply(name, groups("A", 1, 7), "create-1", nil)
		failure, err := w.WhyFailed(ctx, name)
		require.NoError(t, err)
		require.Empty(t, failure.String())
		require.Empty(t, failure.Stuck)
		require.False(t, failure.Began.IsZero())
		require.True(t, failure.RollbackBegan.IsZero())
	})
	t.Run("skips cancelled resources", func(t *testing.T) {
		fail("create", "B7", "the seventh is one too many")
		now := w.apply(name, groups("B", 20, 7), "update-1", nil)
		require.Equal(t, "UPDATE_ROLLBACK_COMPLETE", now.Status)
		failure, err := w.WhyFailed(ctx, name)
		require.NoError(t, err)
		require.Equal(t, "B7", failure.Resource)
		require.False(t, failure.RollbackBegan.Before(failure.Began))
		require.False(t, failure.RollbackBegan.IsZero())
		require.Contains(t, failure.String(), "B7: ")
		require.Contains(t, failure.Reason, "the seventh is one too many")
	})
	t.Run("ignores earlier operations", func(t *testing.T) {
		fail("update", "A0", "not today")
		w.apply(name, groups("A", 1, 14), "update-2", nil)
		failure, err := w.WhyFailed(ctx, name)
		require.NoError(t, err)
		require.Equal(t, "A0", failure.Resource)
		require.Contains(t, failure.Reason, "not today")
	})
	t.Run("finds the first cause of a failed rollback", func(t *testing.T) {
		w.OnResource(func(step string, r resource.Request) error {
			if step == "create" && r.LogicalID == "C1" || step == "delete" {
				return &wire.Error{Code: "Refused", Message: "refused to " + step, Status: 400}
			}
			return nil
		})
		ordered := strings.Replace(groups("C", 2, 7), "  C1:\n", "  C1:\n    DependsOn: C0\n", 1)
		now := w.apply("drover-demo-other", ordered, "create-2", nil)
		require.Equal(t, "ROLLBACK_FAILED", now.Status)
		failure, err := w.WhyFailed(ctx, "drover-demo-other")
		require.NoError(t, err)
		require.Equal(t, "C1", failure.Resource)
		require.Contains(t, failure.Reason, "refused to create")
		require.Len(t, failure.Stuck, 1)
		require.Equal(t, "AWS::Logs::LogGroup", failure.Stuck[0].Type)
		require.Contains(t, failure.Stuck[0].ID, "C0")
	})
	t.Run("reads later pages of events", func(t *testing.T) {
		fail("create", "D0", "the first of many")
		ordered := groups("D", 61, 7)
		now := w.apply("drover-demo-many", ordered, "create-3", nil)
		require.Equal(t, "ROLLBACK_COMPLETE", now.Status)
		failure, err := w.WhyFailed(ctx, "drover-demo-many")
		require.NoError(t, err)
		require.Equal(t, "D0", failure.Resource)
	})
}

// Of returns the expected stacks and those with the cluster's tag. It returns no other stack, whatever its name or tags.
func TestStacksOf(t *testing.T) {
	w, ctx := newWorld(t), t.Context()
	tag := func(cluster string) map[string]string { return map[string]string{names.TagCluster: cluster} }
	w.apply("drover-demo-network", groups("A", 1, 7), "1", nil) // without tags
	w.apply("drover-demo-pool-old", groups("B", 1, 7), "2", tag("demo"))
	w.apply("drover-demo2-network", groups("C", 1, 7), "3", tag("demo2"))
	w.apply("another-owner", groups("D", 1, 7), "4", tag("demo"))
	w.apply("drover-demo-no-stack-of-ours", groups("E", 1, 7), "5", tag("demo"))
	w.apply("drover-demo-pool-foreign", groups("F", 1, 7), "6", tag("other"))
	change, url := w.change("drover-demo-addons", groups("G", 1, 7), tag("demo"))
	_, err := w.CreateChangeSet(ctx, change, true, url, nil, "7")
	require.NoError(t, err)

	found, err := w.ListCluster(ctx, "demo", []string{names.Network, names.ControlPlane, names.Addons})
	require.NoError(t, err)
	require.Len(t, found, 3)
	require.Equal(t, "REVIEW_IN_PROGRESS", found["addons"].Status, "it exists, although it is empty")
	require.Equal(t, "network", found["network"].Name)
	require.Equal(t, "CREATE_COMPLETE", found["pool-old"].Status)
}

func TestStackSignals(t *testing.T) {
	w, ctx := newWorld(t), t.Context()
	w.apply("drover-demo-pool-a", groups("A", 1, 7), "1", nil)
	require.NoError(t, w.Signal(ctx, "drover-demo-pool-a", "A0", "i-1", true), "no operation waits for one")
}

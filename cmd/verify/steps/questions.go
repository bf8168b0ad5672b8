package steps

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/drover-run/drover/cmd/verify/runner"
)

// question is one that AWS's documentation leaves open, and the experiment that answers it. drover works with both answers.
type question struct {
	name, text string
	// ask returns the answer and its evidence.
	ask func(ctx context.Context, log *runner.Log) (yes bool, evidence string, err error)
	// needs is the step that the experiment needs in addition to the roles.
	needs string
}

// questionsAlone are the open questions whose experiments need no cluster of drover's. They come first, while no node runs: some new
// accounts may run few vCPUs.
func (t *Target) questionsAlone() []question {
	return []question{
		{
			name: "key-tags", text: "Do the tags of CreateKey count at once for permissions on the key?",
			needs: rolesStep, ask: t.askKeyTags,
		},
		{
			name: "terminate-hooks", text: "Does a rolling update wait for the termination hooks of a batch before the next one?",
			needs: rolesStep, ask: t.askTerminateHooks,
		},
		{
			name: "other-signals", text: "Does a rolling update ignore the signals of instances that are not of its batch?",
			needs: rolesStep, ask: t.askOtherSignals,
		},
		{
			name: "refresh-rollback", text: "Can CloudFormation undo an instance refresh without autoscaling:RollbackInstanceRefresh?",
			needs: rolesStep, ask: t.askRefreshRollback,
		},
		{
			name:  "other-instances",
			text:  "Does an update of a group that leaves its launch template alone replace instances of another version of it?",
			needs: rolesStep, ask: t.askOtherInstances,
		},
	}
}

// questionsOfClusters are the open questions whose experiments need a cluster.
func (t *Target) questionsOfClusters() []question {
	return []question{
		{
			name: "entry-roles", text: "Can a STANDARD access entry be created without iam:PassRole on its role?",
			needs: "cluster", ask: t.askEntryRoles,
		},
		{
			name:  "addon-identities",
			text:  "Are CreateAddon, UpdateAddon and DeleteAddon allowed on the cluster and the add-on enough for pod identities?",
			needs: "cluster", ask: t.askAddonIdentities,
		},
		{
			name: "key-grants", text: "Does the grant that EKS creates on a key have kms:GrantIsForAWSResource?",
			needs: rolesStep, ask: t.askKeyGrants,
		},
		{
			name: "lower-version", text: "Does a lower Version in the template of an AWS::EKS::Cluster start a version rollback?",
			needs: rolesStep, ask: t.askLowerVersion,
		},
	}
}

// rolesStep is the step that makes what the experiments have in common.
const rolesStep = "questions"

// prepareQuestions is the step that makes the roles and the network of the experiments, and begins those that take long.
func (t *Target) prepareQuestions() runner.Step {
	return runner.Step{
		Name: rolesStep, Title: "roles and a network exist for the questions that AWS's documentation leaves open",
		Needs: []string{"doctor", "account"}, Timeout: 15 * time.Minute, Run: t.prepareExperiments,
	}
}

// questionSteps returns a step for each question. A step passes if the question is answered, whatever the answer is.
func questionSteps(questions []question) (steps []runner.Step) {
	for _, f := range questions {
		needs := []string{rolesStep}
		if f.needs != rolesStep {
			needs = append(needs, f.needs)
		}
		steps = append(steps, runner.Step{
			Name: f.name, Title: f.text, Needs: needs, Timeout: time.Hour,
			Run: func(ctx context.Context, log *runner.Log) error {
				yes, evidence, err := f.ask(ctx, log)
				if err != nil {
					return fmt.Errorf("the question is not answered: %w", err)
				}
				answer := "no"
				if yes {
					answer = "yes"
				}
				log.Found("%s %s: %s", f.text, answer, evidence)
				return nil
			},
		})
	}
	return steps
}

// isDenied reports whether the reason of a failure is that IAM or a key policy did not allow an action.
func isDenied(reason, action string) bool {
	text := strings.ToLower(reason)
	return strings.Contains(text, strings.ToLower(action)) &&
		(strings.Contains(text, "not authorized") || strings.Contains(text, "accessdenied") || strings.Contains(text, "access denied"))
}

package steps

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/cmd/verify/runner"
	"github.com/drover-run/drover/local/engine/facts"
)

func TestAnswer(t *testing.T) {
	const action = "kms:EnableKeyRotation"
	yes, evidence, err := answer("", nil, action, "it worked")
	require.NoError(t, err)
	require.True(t, yes)
	require.Equal(t, "it worked", evidence)

	denied := "Key: User: arn:aws:sts::111122223333:assumed-role/r/s is not authorized to perform: kms:EnableKeyRotation on resource: arn"
	yes, evidence, err = answer(denied, nil, action, "it worked")
	require.NoError(t, err)
	require.False(t, yes)
	require.Equal(t, denied, evidence)

	for _, reason := range []string{
		"Key: User: r is not authorized to perform: kms:CreateKey", "Key: EnableKeyRotation: Rate exceeded", "Key: Resource creation cancelled",
	} {
		_, _, err = answer(reason, nil, action, "it worked")
		require.ErrorContains(t, err, "another reason")
	}
	_, _, err = answer("", errors.New("no network"), action, "it worked")
	require.ErrorContains(t, err, "no network")
}

// The question about tags of keys, with a role that gives the answer yes in any account, and with one that gives none.
func TestAskKeyTags(t *testing.T) {
	_, target := open(t)
	ask := func(t *testing.T, old, changed string) runner.Result {
		t.Helper()
		require.Contains(t, roleTemplate, old)
		roles, err := target.createStack(t.Context(), "facts", strings.NewReplacer(old, changed).Replace(
			strings.NewReplacer("CLUSTER", "c", "SUFFIX", target.Suffix).Replace(roleTemplate)))
		require.NoError(t, err)
		defer func() { require.NoError(t, target.removeStack(t.Context(), target.ownPrefix()+"facts")) }()
		target.experiments = roles
		return step(t, target.factSteps()[1].Run)
	}
	t.Run("allowed", func(t *testing.T) {
		result := ask(t, `"kms:DescribeKey", "kms:GetKeyPolicy"`, `"kms:EnableKeyRotation", "kms:DescribeKey", "kms:GetKeyPolicy"`)
		require.Equal(t, runner.Passed, result.Outcome, result.Reason)
		require.Contains(t, result.Evidence[0], "? yes: ")
	})
	t.Run("denied before", func(t *testing.T) {
		result := ask(t, `["kms:CreateKey", "kms:TagResource"]`, `["kms:TagResource"]`)
		require.Equal(t, runner.Failed, result.Outcome)
		require.Contains(t, result.Reason, "another reason")
	})
	own, err := target.ownStacks(t.Context())
	require.NoError(t, err)
	require.Empty(t, own, "each experiment removes its stack")
}

// The run has a step for each open fact of the local account, with the same question: none is forgotten.
func TestFactsAreThoseOfTheLocalAccount(t *testing.T) {
	questions := map[string]string{}
	for _, f := range (&Target{}).facts() {
		require.NotContains(t, questions, f.name)
		questions[f.name] = f.question
	}
	for _, e := range facts.All() {
		require.Equal(t, e.Question, questions[string(e.Fact)], "facts has no step for %s", e.Fact)
	}
}

// Each question without an experiment stays open. Its step says so, and does not pass.
func TestFactsWithoutExperiment(t *testing.T) {
	target := &Target{}
	steps := target.factSteps()
	require.NoError(t, runner.Check(target.All()))
	for i, f := range target.facts() {
		require.Equal(t, f.name, steps[i+1].Name)
		require.NotEqual(t, f.skip == "", f.ask == nil, f.name)
		if f.skip != "" {
			require.Equal(t, runner.Skipped, step(t, steps[i+1].Run).Outcome)
		}
	}
}

package steps

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/cmd/verify/runner"
	"github.com/drover-run/drover/local/engine/questions"
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
		require.NoError(t, target.findZones(t.Context()))
		roles, err := target.createStack(t.Context(), rolesStep, strings.ReplaceAll(target.fill(roleTemplate), old, changed))
		require.NoError(t, err)
		defer func() { require.NoError(t, target.removeStack(t.Context(), target.sharedStack())) }()
		target.experiments = roles
		return step(t, questionSteps(target.questionsAlone())[0].Run)
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

// The run has a step for each open question of the local account, with the same text: none is forgotten.
func TestQuestionsAreThoseOfTheLocalAccount(t *testing.T) {
	texts := map[string]string{}
	target := &Target{}
	require.NoError(t, runner.Check(target.All()))
	for _, q := range append(target.questionsAlone(), target.questionsOfClusters()...) {
		require.NotContains(t, texts, q.name)
		texts[q.name] = q.text
	}
	for _, q := range questions.All() {
		require.Equal(t, q.Text, texts[string(q.Name)], "no step for %s", q.Name)
	}
}

// The experiments with groups answer both ways, as the account reads the documentation, and leave nothing.
func TestAskGroups(t *testing.T) {
	other, err := questions.Parse(questions.Every)
	require.NoError(t, err)
	for want, readings := range map[string]questions.Readings{"no": nil, "yes": other} {
		t.Run(want, func(t *testing.T) {
			a, target := openWith(t, readings)
			require.NoError(t, target.resolveReleases(t.Context()))
			result := step(t, target.makeRoles)
			require.Equal(t, runner.Passed, result.Outcome, result.Reason)
			for _, s := range questionSteps(target.questionsAlone())[1:] {
				t.Run(s.Name, func(t *testing.T) {
					result := step(t, s.Run)
					require.Equal(t, runner.Passed, result.Outcome, result.Reason)
					require.Contains(t, result.Evidence[0], "? "+want+": ")
				})
			}
			require.NoError(t, target.removeOwn(t.Context(), []string{target.sharedStack()}))
			require.Empty(t, a.EC2.Tagged(t.Context()))
			own, err := target.ownStacks(t.Context())
			require.NoError(t, err)
			require.Empty(t, own)
		})
	}
}

// The question about other instances, under both readings.
func TestAskOtherInstances(t *testing.T) {
	for reading, answer := range map[string]string{"": "? no: ", string(questions.OtherInstances): "? yes: "} {
		t.Run(answer, func(t *testing.T) {
			readings, err := questions.Parse(reading)
			require.NoError(t, err)
			_, target := openWith(t, readings)
			require.NoError(t, target.findZones(t.Context()))
			require.NoError(t, target.resolveReleases(t.Context()))
			roles, err := target.createStack(t.Context(), rolesStep, target.fill(roleTemplate))
			require.NoError(t, err)
			target.experiments = roles
			all := target.questionsAlone()
			result := step(t, questionSteps(all[len(all)-1:])[0].Run)
			require.Equal(t, runner.Passed, result.Outcome, result.Reason)
			require.Contains(t, result.Evidence[len(result.Evidence)-1], answer)
		})
	}
}

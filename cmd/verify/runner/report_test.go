package runner_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/cmd/verify/runner"
)

func TestReport(t *testing.T) {
	w := newWorld(t)
	w.Meter.Start("a", w.now, runner.Rate{Name: "nodes", PerHour: 6})
	require.NoError(t, w.Do(w.ctx, w.cleanup, []runner.Step{
		w.step("a", nil), w.step("b", errors.New("denied to arn:aws:sts::123456789012:assumed-role/Ops/jane")), w.step("c", nil, "b"),
	}))
	report := w.Report(runner.About{{"region", "eu-central-1"}}, w.now, runner.NewRedactor(map[string]string{
		"assumed-role/Ops/jane": "<caller>",
	}))
	require.Contains(t, report, "1 passed, 1 failed, 1 skipped.")
	require.Contains(t, report, "- region: eu-central-1\n")
	require.Contains(t, report, "- estimated cost: $0.20 (nodes $0.20)")
	require.Contains(t, report, "| a | PASS | 1m0s | 1m0s | $0.10 | title of a |")
	require.Contains(t, report, "| b | FAIL | 1m0s | 2m0s | $0.20 | title of b |")
	require.Contains(t, report, "| c | SKIP | 0s |")
	require.Contains(t, report, "- evidence of a\n")
	require.Contains(t, report, "denied to arn:aws:sts::<account>:<caller>")
	require.NotContains(t, report, "jane")
}

func TestRedactor(t *testing.T) {
	r := runner.NewRedactor(map[string]string{"": "never"})
	for text, want := range map[string]string{
		"drover-specs-123456789012-us-east-1":                 "drover-specs-<account>-us-east-1",
		"arn:aws:iam::123456789012:role/admin":                "arn:aws:iam::<account>:role/admin",
		"key AKIAIOSFODNN7EXAMPLE, ASIAIOSFODNN7EXAMPLE":      "key <key>, <key>",
		"?X-Amz-Security-Token=abc/d%2B&X-Amz-Signature=ef01": "?X-Amz-Security-Token=<secret>&X-Amz-Signature=<secret>",
		"Bearer k8s-aws-v1.aHR0cHM6Ly9z":                      "Bearer <token>",
		"token eyJhbGciOi.eyJpc3MiOi.c2lnbmF0dXJl":            "token <token>",
		"AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG":         "AWS_SECRET_ACCESS_KEY=<secret>",
		`{"SessionToken": "abc=="}`:                           `{"SessionToken": "<secret>"}`,
		"ami-0123456789abcdef0, 1.36, 0.5 s":                  "ami-0123456789abcdef0, 1.36, 0.5 s",
	} {
		require.Equal(t, want, r.Text(text))
	}
}

package kube_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/drain"
)

func TestManyPodsLeaveTogether(t *testing.T) {
	for _, n := range []int{30, 100, 240} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			w, from := web(t, n)
			w.node("b")
			began := time.Now()
			report := w.drain(from, policy(), patience)
			t.Logf("%d pods in %s, %d requests", n, time.Since(began).Round(10*time.Millisecond), report.Requests)
			require.Equal(t, drain.Done, report.Outcome, "%+v", report)
			require.Empty(t, w.podsOn(from))
		})
	}
}

func TestBudgetOfOne(t *testing.T) {
	t.Parallel() // it waits most of the time
	w, from := startWithBudget(t, 20, 1)
	began := time.Now()
	report := w.drain(from, policy(), patience)
	t.Logf("20 pods, budget of 1: %s, %d requests", time.Since(began).Round(10*time.Millisecond), report.Requests)
	require.Equal(t, drain.Done, report.Outcome, "%+v", report)
}

func TestBudgetOfTenPercent(t *testing.T) {
	t.Parallel() // it waits most of the time
	w, from := web(t, 50)
	w.budget("web", "{maxUnavailable: 10%, selector: {matchLabels: {app: web}}}", 5)
	w.node("b")
	began := time.Now()
	report := w.drain(from, policy(), patience)
	t.Logf("50 pods, 10%%: %s, %d requests", time.Since(began).Round(10*time.Millisecond), report.Requests)
	require.Equal(t, drain.Done, report.Outcome, "%+v", report)
}

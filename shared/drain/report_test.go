package drain

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDescribeBlocked(t *testing.T) {
	t.Run("has the words of each reason", func(t *testing.T) {
		var report Report
		Describe(&report, Decision{Blocked: []Blocked{
			{Pod: "shop/a", Why: Reason{Code: BudgetEmpty}, Budgets: []string{"shop/web"}}, {Pod: "shop/b", Why: Reason{Refused, "no"}},
		}})
		require.Len(t, report.Blocked, 2)
		require.Equal(t, BudgetEmpty.String(), report.Blocked[0].Why)
		require.Equal(t, []string{"shop/web"}, report.Blocked[0].Budgets)
		require.Equal(t, Refused.String()+": no", report.Blocked[1].Why)
	})
	for code := BudgetEmpty; code <= Failed; code++ {
		t.Run("reports if a block lasts: "+code.String(), func(t *testing.T) {
			report := Report{Lasting: true}
			Describe(&report, Decision{Blocked: []Blocked{{Pod: "shop/a", Why: Reason{Code: Conflict}}, {Pod: "shop/b", Why: Reason{Code: code}}}})
			want := code != ReadinessChanges && code != BudgetChanges && code != Conflict && code != Overload && code != Failed
			require.Equal(t, want, report.Lasting)
		})
	}
	t.Run("forgets earlier blocks", func(t *testing.T) {
		report := Report{Lasting: true}
		Describe(&report, Decision{})
		require.False(t, report.Lasting)
		require.Empty(t, report.Blocked)
	})
}

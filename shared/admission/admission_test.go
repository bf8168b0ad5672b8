package admission_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/fault"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/store/storetest"
)

// admittedStatus is the status of a cluster that was planned with a version of its spec.
func admittedStatus(version string, phase status.Phase) func(*status.Status) {
	return func(s *status.Status) {
		s.Phase, s.PlannedVersion, s.ObservedVersion = phase, version, version
		s.Set(status.Condition{Type: status.Converged, Status: "True", Reason: status.ReasonUpToDate}, noon)
	}
}

func TestAdmitValidSpec(t *testing.T) {
	t.Run("records it and starts an execution", func(t *testing.T) {
		f := newFixture()
		version := f.upload(spec)
		require.NoError(t, f.admitter.Admit(t.Context(), "demo"))
		s := f.status(t)
		require.Equal(t, "True", s.Condition(status.SpecAccepted).Status)
		require.Equal(t, status.Pending, s.Phase)
		require.Equal(t, version, s.ObservedVersion)
		require.Empty(t, s.PlannedVersion, "no execution has planned it")
		require.Equal(t, []string{`demo "version-1" after ""`}, f.started)
	})
	t.Run("names the execution after the planned version too", func(t *testing.T) {
		f := newFixture()
		f.set(t, admittedStatus("version-0", status.Ready))
		f.upload(spec)
		require.NoError(t, f.admitter.Admit(t.Context(), "demo"))
		require.Equal(t, []string{`demo "version-1" after "version-0"`}, f.started)
	})
	t.Run("starts nothing if that version was planned", func(t *testing.T) {
		f := newFixture()
		f.set(t, admittedStatus(f.upload(spec), status.Ready))
		require.NoError(t, f.admitter.Admit(t.Context(), "demo"))
		require.Empty(t, f.started)
		require.Equal(t, status.Ready, f.status(t).Phase)
	})
	t.Run("starts another execution if that version was rejected", func(t *testing.T) {
		f := newFixture()
		version := f.upload(spec)
		f.set(t, admittedStatus(version, status.Ready))
		f.set(t, func(s *status.Status) {
			s.RejectSpec(version, status.ReasonSpecInvalid, "a slow copy", noon.Add(time.Second))
		})
		require.NoError(t, f.admitter.Admit(t.Context(), "demo"))
		require.Equal(t, []string{`demo "version-1" after "rejected 2026-11-26T12:00:01Z"`}, f.started)
	})
	t.Run("starts nothing if its release is unusable", func(t *testing.T) {
		f := newFixture()
		version := f.upload(spec)
		f.set(t, admittedStatus(version, status.Ready))
		f.set(t, func(s *status.Status) { s.RejectSpec(version, status.ReasonReleaseUnusable, "no r1", noon) })
		require.NoError(t, f.admitter.Admit(t.Context(), "demo"))
		require.Empty(t, f.started, "planning rejected it, and the release's upload starts another execution")
	})
	t.Run("ignores the rejection of an older version", func(t *testing.T) {
		f := newFixture()
		f.set(t, admittedStatus("version-0", status.Ready))
		f.set(t, func(s *status.Status) { s.RejectSpec("version-0", status.ReasonSpecInvalid, "no zone", noon) })
		f.upload(spec)
		require.NoError(t, f.admitter.Admit(t.Context(), "demo"))
		require.Equal(t, []string{`demo "version-1" after "version-0"`}, f.started)
	})
	t.Run("records public addresses of a VPC as a warning about the network", func(t *testing.T) {
		f := newFixture()
		f.upload(strings.Replace(spec, "10.0.0.0/16", "8.8.0.0/16", 1))
		require.NoError(t, f.admitter.Admit(t.Context(), "demo"))
		var conditions []string
		for _, c := range f.status(t).Conditions {
			conditions = append(conditions, c.Type+"="+c.Status+" "+c.Reason)
		}
		require.Equal(t, []string{"AccessGranted=False NoAccess", "NetworkUsable=False PublicAddresses", "SpecAccepted=True Valid"}, conditions)
	})
	t.Run("reports that a pause lets operations in flight finish", func(t *testing.T) {
		f := newFixture()
		f.set(t, admittedStatus("version-0", status.Converging))
		f.upload(spec + "  paused: true\n")
		require.NoError(t, f.admitter.Admit(t.Context(), "demo"))
		require.Contains(t, f.status(t).Message, "spec.paused is true")
	})
}

func TestAdmitUnusableSpec(t *testing.T) {
	for name, test := range map[string]struct{ body, message string }{
		"invalid":               {"kind: Cluster\n", "clusters/demo.yaml"},
		"too large":             {strings.Repeat("#", api.MaxFile+1), "bytes"},
		"of another cluster":    {strings.Replace(spec, "demo", "other", 1), "metadata.name"},
		"of an unknown version": {strings.Replace(spec, "{name: r1}", "{name: r1}\n  templateVersion: v9", 1), "templateVersion"},
	} {
		t.Run(name+" changes only the status", func(t *testing.T) {
			f := newFixture()
			f.set(t, admittedStatus("version-0", status.Ready))
			version := f.upload(test.body)
			require.NoError(t, f.admitter.Admit(t.Context(), "demo"))
			s := f.status(t)
			require.Equal(t, status.ReasonSpecInvalid, s.Condition(status.SpecAccepted).Reason)
			require.Contains(t, s.Condition(status.SpecAccepted).Message, test.message)
			require.Equal(t, version, s.ObservedVersion)
			require.Equal(t, "version-0", s.PlannedVersion, "the last good spec applies")
			require.Equal(t, status.Ready, s.Phase)
			require.Empty(t, f.started)
		})
	}
	for name, test := range map[string]struct{ length, want int }{
		"keeps a message of 16 KiB":         {16 << 10, 16 << 10},
		"shortens a message that is longer": {16<<10 + 1, 16<<10 + len("\n…")},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture()
			message := func(field int) string {
				unknown := "  " + strings.Repeat("x", field) + ": {}\n"
				for i := range 46 {
					unknown += fmt.Sprintf("  x%03d%s: {}\n", i, strings.Repeat("y", 91))
				}
				f.upload("kind: Cluster\nspec:\n" + unknown)
				require.NoError(t, f.admitter.Admit(t.Context(), "demo"))
				return f.status(t).Condition(status.SpecAccepted).Message
			}
			others := len(message(10)) - 10 // the message without the name of the first field
			got := message(test.length - others)
			require.Len(t, got, test.want)
			require.Equal(t, test.want > 16<<10, strings.HasSuffix(got, "\n…"))
		})
	}
}

func TestAdmitDeletedSpec(t *testing.T) {
	t.Run("starts an execution after the planned version", func(t *testing.T) {
		f := newFixture()
		f.set(t, admittedStatus("version-1", status.Ready))
		require.NoError(t, f.admitter.Admit(t.Context(), "demo"))
		require.Equal(t, []string{`demo "" after "version-1"`}, f.started)
		s := f.status(t)
		require.Empty(t, s.ObservedVersion)
		require.Equal(t, status.ReasonSpecAbsent, s.Condition(status.SpecAccepted).Reason)
		require.Contains(t, s.Condition(status.SpecAccepted).Message, names.ClusterSpec("demo"))
	})
	t.Run("ignores a cluster without a status", func(t *testing.T) {
		f := newFixture()
		require.NoError(t, f.admitter.Admit(t.Context(), "demo"))
		require.Empty(t, f.started)
		require.Empty(t, f.objects.Keys())
	})
	t.Run("ends a cluster that was never planned", func(t *testing.T) {
		f := newFixture()
		f.set(t, func(s *status.Status) { s.Phase, s.ObservedVersion = status.Stopped, "version-1" })
		require.NoError(t, f.admitter.Admit(t.Context(), "demo"))
		require.Equal(t, status.Deleted, f.status(t).Phase)
		require.Empty(t, f.started)
	})

	// withdrawn is the status of a cluster whose deletion failed, and whose spec was uploaded again since.
	withdrawn := func(s *status.Status) {
		s.Phase, s.PlannedVersion, s.ObservedVersion = status.Failed, "", "version-2"
		s.Set(status.Condition{Type: status.Converged, Status: "False", Reason: "StackFailed"}, noon)
	}
	t.Run("continues a deletion whose upload was withdrawn", func(t *testing.T) {
		f := newFixture()
		f.set(t, withdrawn)
		require.NoError(t, f.admitter.Admit(t.Context(), "demo"))
		require.Equal(t, []string{`demo "" after "version-2"`}, f.started)
		require.Empty(t, f.status(t).ObservedVersion)
	})
	t.Run("writes no status before that execution is started", func(t *testing.T) {
		f := newFixture()
		f.set(t, withdrawn)
		f.startErr = errors.New("throttled")
		require.ErrorIs(t, f.admitter.Admit(t.Context(), "demo"), f.startErr)
		require.Equal(t, "version-2", f.status(t).ObservedVersion)
	})
	for name, change := range map[string]func(*status.Status){
		"the deletion is pending":  func(s *status.Status) { s.ObservedVersion = "" },
		"the cluster is deleted":   func(s *status.Status) { s.Phase = status.Deleted },
		"the cluster was not made": func(s *status.Status) { s.Unset(status.Converged) },
	} {
		t.Run("starts nothing when "+name, func(t *testing.T) {
			f := newFixture()
			f.set(t, withdrawn)
			f.set(t, change)
			require.NoError(t, f.admitter.Admit(t.Context(), "demo"))
			require.Empty(t, f.started)
		})
	}
}

func TestAdmitRepeats(t *testing.T) {
	t.Run("when the spec changes at the same time", func(t *testing.T) {
		f := newFixture()
		f.upload("invalid")
		f.objects.Once("Get", func(string) { f.upload(spec) })
		require.NoError(t, f.admitter.Admit(t.Context(), "demo"))
		s := f.status(t)
		require.Equal(t, status.ReasonValid, s.Condition(status.SpecAccepted).Reason)
		require.Equal(t, "version-2", s.ObservedVersion)
		require.Equal(t, []string{`demo "version-2" after ""`}, f.started)
	})
	t.Run("when the spec is deleted at the same time", func(t *testing.T) {
		f := newFixture()
		f.upload("invalid")
		f.objects.Once("Get", func(string) { f.specs.Delete(names.ClusterSpec("demo")) })
		require.NoError(t, f.admitter.Admit(t.Context(), "demo"))
		require.Equal(t, status.Deleted, f.status(t).Phase)
	})
	t.Run("at most five times", func(t *testing.T) {
		f := newFixture()
		f.upload("invalid")
		writes := 0
		f.objects.OnCall = func(call storetest.Call) error {
			if call.Operation == "Put" {
				writes++
				f.upload("invalid")
			}
			return nil
		}
		err := f.admitter.Admit(t.Context(), "demo")
		var transient *fault.Transient
		require.ErrorAs(t, err, &transient)
		require.ErrorContains(t, err, "the spec of demo changed 5 times")
		require.Equal(t, 5, writes)
	})
}

func TestAdmitReturnsErrors(t *testing.T) {
	for name, test := range map[string]struct {
		given  func(*testing.T, *fixture)
		writes bool
	}{
		"of reading the spec": {func(_ *testing.T, f *fixture) { f.specs.Refuse("Get", "AccessDenied") }, false},
		"of reading the spec again": {func(_ *testing.T, f *fixture) {
			f.upload(spec)
			f.objects.Once("Put", func(string) { f.refuseOnce() })
		}, true},
		"of writing the status of a valid spec": {func(_ *testing.T, f *fixture) {
			f.upload(spec)
			f.objects.Refuse("Put", "AccessDenied")
		}, false},
		"of writing the status of an invalid spec": {func(_ *testing.T, f *fixture) {
			f.upload("invalid")
			f.objects.Refuse("Put", "AccessDenied")
		}, false},
		"of reading the status of a deleted spec": {func(_ *testing.T, f *fixture) { f.objects.Refuse("Get", "AccessDenied") }, false},
		"of writing the status of a deleted spec": {func(t *testing.T, f *fixture) {
			f.set(t, admittedStatus("version-1", status.Ready))
			f.objects.Refuse("Put", "AccessDenied")
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture()
			test.given(t, f)
			require.Equal(t, "AccessDenied", fault.Code(f.admitter.Admit(t.Context(), "demo")))
			require.Equal(t, test.writes, len(f.started) > 0, "the status is written before an execution starts")
		})
	}
	t.Run("of starting the execution of a spec", func(t *testing.T) {
		f := newFixture()
		f.upload(spec)
		f.startErr = errors.New("throttled")
		require.ErrorIs(t, f.admitter.Admit(t.Context(), "demo"), f.startErr)
	})
	t.Run("of starting the execution of a deletion", func(t *testing.T) {
		f := newFixture()
		f.set(t, admittedStatus("version-1", status.Ready))
		f.startErr = errors.New("throttled")
		require.ErrorIs(t, f.admitter.Admit(t.Context(), "demo"), f.startErr)
	})
}

package events

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// samples pairs each sample file with the type that holds it. Fields of AWS's that drover does not read are listed, so that a
// misspelt field of ours cannot hide among them.
var samples = map[string]struct {
	payload any
	unread  []string
}{
	"object-created.json": {new(Event[Object]), []string{
		"version", "detail.version", "detail.object.size", "detail.object.etag", "detail.request-id", "detail.requester",
		"detail.source-ip-address",
	}},
	"object-deleted.json": {new(Event[Object]), []string{
		"version", "detail.version", "detail.request-id", "detail.requester", "detail.source-ip-address",
	}},
	"stack-status.json":           {new(Event[StackStatus]), []string{"version", "detail.status-details.status-reason"}},
	"lifecycle-launch.json":       {new(Event[Lifecycle]), []string{"version"}},
	"lifecycle-terminate.json":    {new(Event[Lifecycle]), []string{"version"}},
	"cluster-status-change.json":  {new(Event[StatusChange]), []string{"version"}},
	"cluster-spec-rejected.json":  {new(Event[SpecRejected]), []string{"version"}},
	"cluster-drift.json":          {new(Event[Drift]), []string{"version"}},
	"cluster-node-change.json":    {new(Event[NodeChange]), []string{"version"}},
	"cluster-upgrade-change.json": {new(Event[UpgradeChange]), []string{"version"}},
	"rollout-change.json":         {new(Event[RolloutEvent]), []string{"version"}},
	"release-verdict.json":        {new(Event[Verdict]), []string{"version"}},
	"upload-ignored.json":         {new(Event[IgnoredUpload]), []string{"version"}},
	"converge.json":               {new(Converge), nil},
	"plan-request.json":           {new(PlanRequest), nil},
	"plan-result.json":            {new(PlanResult), nil},
	"plan-result-upgrade.json":    {new(PlanResult), nil},
	"change-request.json":         {new(ChangeRequest), nil},
	"change-result.json":          {new(ChangeResult), nil},
	"sweep.json":                  {new(Sweep), nil},
	"rollout.json":                {new(Rollout), nil},
	"fleet.json":                  {new(Fleet), nil},
	"sweep-ended.json": {
		new(Sweep), []string{"ended.inputDetails", "ended.output", "ended.outputDetails", "ended.cause"},
	},
	"upgrade.json":                  {new(Upgrade), nil},
	"upgrade-continues.json":        {new(Upgrade), nil},
	"upgrade-request.json":          {new(UpgradeRequest), nil},
	"upgrade-result.json":           {new(UpgradeResult), nil},
	"prepare-request.json":          {new(PrepareRequest), nil},
	"prepare-list-retained.json":    {new(PrepareRequest), nil},
	"report-request.json":           {new(ReportRequest), nil},
	"report-result.json":            {new(ReportResult), nil},
	"join-request.json":             {new(JoinRequest), nil},
	"join-result.json":              {new(JoinResult), nil},
	"spot-interruption.json":        {new(Event[SpotInstance]), []string{"version"}},
	"rebalance-recommendation.json": {new(Event[SpotInstance]), []string{"version"}},
	"drain-request-hook.json":       {new(DrainRequest), nil},
	"drain-request-spot.json":       {new(DrainRequest), nil},
	"drain-request-by-hand.json":    {new(DrainRequest), nil},
	"drain-result.json":             {new(DrainResult), nil},
	"relay-request.json":            {new(RelayRequest), nil},
	"relay-response.json":           {new(RelayResponse), nil},
	"relay-response-error.json":     {new(RelayResponse), nil},
}

func TestSamplesSurviveARoundTrip(t *testing.T) {
	for file, sample := range samples {
		t.Run(file, func(t *testing.T) {
			body, err := os.ReadFile(filepath.Join("samples", file))
			require.NoError(t, err)
			require.NoError(t, json.Unmarshal(body, sample.payload))
			again, err := json.Marshal(sample.payload)
			require.NoError(t, err)
			want := decodeMap(t, body)
			for _, path := range sample.unread {
				remove(t, want, path)
			}
			require.Equal(t, want, decodeMap(t, again))
		})
	}
}

func TestEachSampleIsTested(t *testing.T) {
	files, err := os.ReadDir("samples")
	require.NoError(t, err)
	for _, file := range files {
		require.Contains(t, samples, file.Name())
	}
}

func decodeMap(t *testing.T, body []byte) map[string]any {
	var v map[string]any
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	require.NoError(t, decoder.Decode(&v))
	return v
}

// remove deletes a dotted path, which must exist.
func remove(t *testing.T, v map[string]any, path string) {
	for {
		head, rest, more := strings.Cut(path, ".")
		require.Contains(t, v, head)
		if !more {
			delete(v, head)
			return
		}
		v, path = v[head].(map[string]any), rest
	}
}

package overview

import (
	"encoding/json"
	"time"

	"github.com/drover-run/drover/shared/rollout"
)

// RolloutRow is one rollout.
type RolloutRow struct {
	Name    string `json:"name"`
	State   string `json:"state"`
	Message string `json:"message,omitempty"`
	// Plan is the digest of the plan of the newest run, or else of the newest plan.
	Plan string `json:"plan,omitempty"`
	// Run is the newest one; 0 if there was none. Stage is its open or halted stage.
	Run   int64  `json:"run,omitempty"`
	Stage string `json:"stage,omitempty"`
	// Members of the run, and how many of them are Good, and Failed or Blocked.
	Members   int       `json:"members"`
	Good      int       `json:"good"`
	Failed    int       `json:"failed"`
	UpdatedAt time.Time `json:"updatedAt,omitzero"`
}

// SummarizeRollout returns the row of a status.
func SummarizeRollout(s *rollout.Status) RolloutRow {
	row := RolloutRow{Name: s.Metadata.Name, State: s.State, Message: firstLine(s.Message), UpdatedAt: s.UpdatedAt}
	if s.Plan != nil {
		row.Plan = s.Plan.Digest
	}
	if s.Run == nil {
		return row
	}
	row.Run, row.Plan = s.Run.Number, s.Run.Plan
	for i := range s.Run.Stages {
		stage := &s.Run.Stages[i]
		if row.Stage == "" && stage.State != rollout.StageWaiting && stage.State != rollout.StagePassed {
			row.Stage = stage.Name
		}
		row.Members += len(stage.Members)
		row.Good += stage.Counts[rollout.Good]
		row.Failed += stage.Counts[rollout.Failed] + stage.Counts[rollout.Blocked]
	}
	return row
}

// RolloutsJSON returns the rows of rollouts for the page.
func RolloutsJSON(all []*rollout.Status) ([]byte, error) {
	rows := []RolloutRow{}
	for _, s := range all {
		rows = append(rows, SummarizeRollout(s))
	}
	return json.Marshal(map[string][]RolloutRow{"rollouts": rows})
}

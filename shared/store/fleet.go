package store

// The documents of fleets: see shared/rollout. Large ones are compressed. Reading also accepts plain JSON, which operators can write.

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/rollout"
)

// maxFleet is the largest document of a fleet, in bytes and uncompressed. One of 10,000 clusters has a tenth of that.
const maxFleet = 64 << 20

// getFleet reads a document of a fleet into v and returns its ETag. found is false, and the ETag empty, if there is none.
func (s *State) getFleet(ctx context.Context, key string, v any) (etag string, found bool, err error) {
	object, err := s.Get(ctx, key, maxFleet)
	if errors.Is(err, ErrNotFound) {
		return "", false, nil
	}
	if err != nil {
		return "", false, err
	}
	body, err := unzip(object.Body)
	if err == nil {
		err = json.Unmarshal(body, v)
	}
	if err != nil {
		return "", false, fmt.Errorf("reading s3://%s/%s: %w", s.Name(), key, err)
	}
	return object.ETag, true, nil
}

// putFleet writes a document of a fleet if it still has the ETag: see Objects.Replace.
func (s *State) putFleet(ctx context.Context, key string, v any, etag string) (string, error) {
	body, err := json.Marshal(v)
	if err != nil {
		return "", fmt.Errorf("writing s3://%s/%s: %w", s.Name(), key, err)
	}
	return s.Replace(ctx, key, zip(body), etag)
}

// zip compresses a body. Equal bodies give equal bytes.
func zip(body []byte) []byte {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, _ = w.Write(body) // into memory
	_ = w.Close()
	return out.Bytes()
}

// unzip reads a compressed body. Others are returned as they are.
func unzip(body []byte) ([]byte, error) {
	if !bytes.HasPrefix(body, []byte{0x1f, 0x8b}) {
		return body, nil
	}
	r, err := gzip.NewReader(bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	plain, err := io.ReadAll(io.LimitReader(r, maxFleet+1))
	if err == nil && len(plain) > maxFleet {
		err = fmt.Errorf("it has more than %d bytes uncompressed", maxFleet)
	}
	return plain, err
}

// ActiveRuns reads the runs that have not ended and the ETag of the list.
func (s *State) ActiveRuns(ctx context.Context) (*rollout.Active, string, error) {
	active := &rollout.Active{}
	etag, _, err := s.getFleet(ctx, names.ActiveRuns, active)
	return active, etag, err
}

// PutActiveRuns writes the runs that have not ended. If another writer was first, it returns ErrConflict.
func (s *State) PutActiveRuns(ctx context.Context, active *rollout.Active, etag string) error {
	_, err := s.putFleet(ctx, names.ActiveRuns, active, etag)
	return err
}

// RolloutRecord reads the record of a rollout and its ETag. Without one it returns an empty record and no ETag.
func (s *State) RolloutRecord(ctx context.Context, name string) (*rollout.Record, string, error) {
	record := &rollout.Record{Rollout: name}
	etag, _, err := s.getFleet(ctx, names.RolloutRecord(name), record)
	return record, etag, err
}

// PutRolloutRecord writes the record of a rollout and returns its ETag. If another writer was first, it returns ErrConflict.
func (s *State) PutRolloutRecord(ctx context.Context, record *rollout.Record, etag string) (string, error) {
	return s.putFleet(ctx, names.RolloutRecord(record.Rollout), record, etag)
}

// EndedRun reads an ended run of a rollout. Without one it returns ErrNotFound.
func (s *State) EndedRun(ctx context.Context, name string, number int64) (*rollout.Run, error) {
	run := &rollout.Run{}
	_, found, err := s.getFleet(ctx, names.EndedRun(name, number), run)
	if err == nil && !found {
		err = fmt.Errorf("run %d of %s: %w", number, name, ErrNotFound)
	}
	return run, err
}

// PutEndedRun writes an ended run once.
func (s *State) PutEndedRun(ctx context.Context, run *rollout.Run) error {
	body, err := json.Marshal(run)
	if err != nil {
		return err
	}
	return s.PutOnce(ctx, names.EndedRun(run.Rollout, run.Number), zip(body))
}

// RolloutPlan reads a plan of a rollout. It refuses a plan whose content does not have the digest.
func (s *State) RolloutPlan(ctx context.Context, digest string) (*rollout.Plan, error) {
	key, plan := names.RolloutPlan(digest), &rollout.Plan{}
	_, found, err := s.getFleet(ctx, key, plan)
	switch {
	case err != nil:
		return nil, err
	case !found:
		return nil, fmt.Errorf("plan %s: %w", digest, ErrNotFound)
	case plan.Digest() != digest:
		return nil, fmt.Errorf("reading s3://%s/%s: its content has the digest %s: the object was edited", s.Name(), key, plan.Digest())
	}
	return plan, nil
}

// PutRolloutPlan writes a plan of a rollout once and returns its digest.
func (s *State) PutRolloutPlan(ctx context.Context, plan *rollout.Plan) (digest string, err error) {
	body, err := json.Marshal(plan)
	if err != nil {
		return "", err
	}
	digest = plan.Digest()
	return digest, s.PutOnce(ctx, names.RolloutPlan(digest), zip(body))
}

// DecisionAnswer reads the answer to a decision. Without one it returns ErrNotFound.
func (s *State) DecisionAnswer(ctx context.Context, name, decision string) (*rollout.DecisionAnswer, error) {
	answer := &rollout.DecisionAnswer{}
	_, err := s.GetJSON(ctx, names.DecisionAnswer(name, decision), answer)
	return answer, err
}

// PutDecisionAnswer writes the answer to a decision once.
func (s *State) PutDecisionAnswer(ctx context.Context, answer rollout.DecisionAnswer) error {
	body, err := json.Marshal(answer)
	if err != nil {
		return err
	}
	return s.PutOnce(ctx, names.DecisionAnswer(answer.Rollout, answer.Decision), body)
}

// DesiredState reads what rollouts want from a cell, and its ETag. See names.Cell.
func (s *State) DesiredState(ctx context.Context, cell string) (*rollout.DesiredState, string, error) {
	desired := &rollout.DesiredState{}
	etag, _, err := s.getFleet(ctx, names.DesiredState(cell), desired)
	if desired.Sections == nil {
		desired.Sections = map[string]rollout.Section{}
	}
	return desired, etag, err
}

// PutDesiredState writes what rollouts want from a cell. If another writer was first, it returns ErrConflict.
func (s *State) PutDesiredState(ctx context.Context, cell string, desired *rollout.DesiredState, etag string) error {
	_, err := s.putFleet(ctx, names.DesiredState(cell), desired, etag)
	return err
}

// CellReport reads what a cell reported, and its ETag. It returns nil and no ETag if the cell has not reported.
func (s *State) CellReport(ctx context.Context, cell string) (*rollout.Report, string, error) {
	report := &rollout.Report{}
	etag, found, err := s.getFleet(ctx, names.CellReport(cell), report)
	if err != nil || !found {
		return nil, "", err
	}
	return report, etag, nil
}

// PutCellReport writes what a cell reports. If another writer was first, it returns ErrConflict.
func (s *State) PutCellReport(ctx context.Context, cell string, report *rollout.Report, etag string) error {
	_, err := s.putFleet(ctx, names.CellReport(cell), report, etag)
	return err
}

// Assignment reads the cell's copy of a cluster's assignment, and its ETag. It returns nil and no ETag if there is none.
func (s *State) Assignment(ctx context.Context, cluster string) (*rollout.CellAssignment, string, error) {
	assignment := &rollout.CellAssignment{}
	etag, err := s.GetJSON(ctx, names.Assignment(cluster), assignment)
	if errors.Is(err, ErrNotFound) {
		return nil, "", nil
	}
	if err != nil {
		return nil, "", err
	}
	return assignment, etag, nil
}

// PutAssignment writes the cell's copy of an assignment. If another writer was first, it returns ErrConflict.
func (s *State) PutAssignment(ctx context.Context, assignment *rollout.CellAssignment, etag string) (string, error) {
	body, err := json.Marshal(assignment)
	if err != nil {
		return "", err
	}
	return s.Replace(ctx, names.Assignment(assignment.Cluster), body, etag)
}

// CellFreezes reads the freezes that hold in this cell, and their ETag.
func (s *State) CellFreezes(ctx context.Context) (*rollout.CellFreezes, string, error) {
	freezes := &rollout.CellFreezes{}
	etag, _, err := s.getFleet(ctx, names.CellFreezes, freezes)
	return freezes, etag, err
}

// PutCellFreezes writes the freezes that hold in this cell. If another writer was first, it returns ErrConflict.
func (s *State) PutCellFreezes(ctx context.Context, freezes *rollout.CellFreezes, etag string) error {
	body, err := json.Marshal(freezes)
	if err != nil {
		return err
	}
	_, err = s.Replace(ctx, names.CellFreezes, body, etag)
	return err
}

// RolloutStatus reads the status of a rollout, and its ETag. It returns nil and no ETag if there is none.
func (s *State) RolloutStatus(ctx context.Context, name string) (*rollout.Status, string, error) {
	status := &rollout.Status{}
	etag, found, err := s.getFleet(ctx, names.RolloutStatus(name), status)
	if err != nil || !found {
		return nil, "", err
	}
	return status, etag, nil
}

// PutRolloutStatus writes the status of a rollout. If another writer was first, it returns ErrConflict.
func (s *State) PutRolloutStatus(ctx context.Context, status *rollout.Status, etag string) error {
	body, err := json.MarshalIndent(status, "", " ")
	if err != nil {
		return err
	}
	_, err = s.Replace(ctx, names.RolloutStatus(status.Metadata.Name), body, etag)
	return err
}

// Looks reads the newest observations of the clusters of this cell.
func (s *State) Looks(ctx context.Context) (*rollout.Looks, error) {
	looks := &rollout.Looks{}
	_, _, err := s.getFleet(ctx, names.CellLooks, looks)
	return looks, err
}

// PutLooks writes the observations of the clusters of this cell. The sweep is the only writer. Of two at once, the
// last one prevails.
func (s *State) PutLooks(ctx context.Context, looks *rollout.Looks) error {
	body, err := json.Marshal(looks)
	if err != nil {
		return err
	}
	_, err = s.Put(ctx, names.CellLooks, body)
	return err
}

package steps

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/drover-run/drover/cmd/verify/runner"
	"github.com/drover-run/drover/shared/doctor"
)

// examine runs drover doctor, for the account alone and for the clusters of the run together.
func (t *Target) examine(ctx context.Context, log *runner.Log) error {
	if err := t.diagnose(ctx, log); err != nil {
		return err
	}
	if err := t.resolveReleases(ctx); err != nil {
		return err
	}
	release, err := t.write(t.older.name, t.older.yaml())
	if err != nil {
		return err
	}
	args := []string{"--release", release}
	for _, s := range []spec{t.smallest(), t.privateOne()} {
		file, err := t.writeSpec(ctx, s)
		if err != nil {
			return err
		}
		args = append(args, file)
	}
	return t.diagnose(ctx, log, args...)
}

// diagnose runs drover doctor. A later step bootstraps the CDK, so that may block here.
func (t *Target) diagnose(ctx context.Context, log *runner.Log, args ...string) error {
	out, failed := t.drover(ctx, log, append([]string{"doctor", "-o", "json"}, args...)...)
	var d struct{ Findings []doctor.Finding }
	if err := json.Unmarshal([]byte(out), &d); err != nil {
		return errors.Join(failed, fmt.Errorf("reading the findings of drover doctor: %w", err))
	}
	return judge(log, d.Findings, failed)
}

// judge fails if anything but the bootstrap blocks. It logs what is not ok.
func judge(log *runner.Log, found []doctor.Finding, failed error) error {
	if len(found) == 0 {
		return errors.Join(failed, errors.New("drover doctor made no check"))
	}
	var blocking []string
	counts := map[doctor.Level]int{}
	for _, f := range found {
		counts[f.Level]++
		if f.Level != doctor.OK {
			log.Found("%s %s: %s; fix: %s", f.Level, f.Check, f.Message, f.Fix)
		}
		if f.Level == doctor.Blocks && f.Check != doctor.Bootstrap {
			blocking = append(blocking, f.Check)
		}
	}
	if len(blocking) > 0 {
		return fmt.Errorf("the account cannot take drover (%s): run the commands of these findings", strings.Join(blocking, ", "))
	}
	if failed != nil && counts[doctor.Blocks] == 0 {
		return failed
	}
	log.Found("%d checks of drover doctor passed, and %d warn", counts[doctor.OK], counts[doctor.Warning])
	return nil
}

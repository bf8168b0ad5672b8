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

// examine runs drover doctor. The next step but one bootstraps the CDK, so that may block here.
func (t *Target) examine(ctx context.Context, log *runner.Log) error {
	out, failed := t.drover(ctx, log, "doctor", "-o", "json")
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

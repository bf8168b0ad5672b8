// Package setup builds the admit function: its clients, its adapters and its handler.
package setup

import (
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sfn"

	"github.com/drover-run/drover/functions/admit/handler"
	"github.com/drover-run/drover/shared/admission"
	"github.com/drover-run/drover/shared/aws/stepfunctions"
	"github.com/drover-run/drover/shared/lambdaruntime"
	"github.com/drover-run/drover/shared/lambdaruntime/documents"
	"github.com/drover-run/drover/shared/lambdaruntime/notices"
	"github.com/drover-run/drover/shared/uploads"
)

// New returns the handler of the function. A caller may replace any exported field before the first event.
func New(cfg aws.Config, env lambdaruntime.Env) *handler.Handler {
	docs := documents.New(cfg, env)
	state, specs := docs.State(notices.New(cfg, env)), docs.Specs()
	admitter := &admission.Admitter{
		Specs: specs, State: state, Machine: stepfunctions.New(sfn.NewFromConfig(cfg), env.Must(lambdaruntime.ConvergeARN)),
		Now: time.Now, Settings: env.Cell(),
	}
	return &handler.Handler{Admitter: admitter, Uploads: uploads.Uploads{State: state, Specs: specs}}
}

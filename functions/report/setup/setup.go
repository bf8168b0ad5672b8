// Package setup builds the report function: its clients, its adapters and its handler.
package setup

import (
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/drover-run/drover/functions/report/handler"
	"github.com/drover-run/drover/shared/lambdaruntime"
	"github.com/drover-run/drover/shared/lambdaruntime/documents"
	"github.com/drover-run/drover/shared/lambdaruntime/notices"
)

// New returns the handler of the function. A caller may replace any exported field before the first event.
func New(cfg aws.Config, env lambdaruntime.Env) *handler.Handler {
	docs := documents.New(cfg, env)
	return &handler.Handler{Specs: docs.Specs(), State: docs.State(notices.New(cfg, env)), Now: time.Now}
}

// Package setup builds the clean function: its clients, its adapters and its handler.
package setup

import (
	"github.com/aws/aws-sdk-go-v2/aws"
	awseks "github.com/aws/aws-sdk-go-v2/service/eks"

	"github.com/drover-run/drover/functions/clean/handler"
	"github.com/drover-run/drover/shared/aws/eks"
	"github.com/drover-run/drover/shared/aws/leftovers"
	"github.com/drover-run/drover/shared/lambdaruntime"
	"github.com/drover-run/drover/shared/lambdaruntime/documents"
	"github.com/drover-run/drover/shared/store"
)

// New returns the handler of the function. A caller may replace any exported field before the first event.
func New(cfg aws.Config, env lambdaruntime.Env) *handler.Handler {
	docs := documents.New(cfg, env)
	return &handler.Handler{
		Specs:     docs.Specs(),
		State:     docs.State(store.Silent),
		Clusters:  eks.New(awseks.NewFromConfig(cfg)),
		Leftovers: leftovers.New(cfg, env.Must(lambdaruntime.LeftoversRole)),
	}
}

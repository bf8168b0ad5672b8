// The sweep function finds what events missed.
package main

import (
	"time"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/sfn"

	admit "github.com/drover-run/drover/functions/admit/handler"
	"github.com/drover-run/drover/functions/sweep/handler"
	"github.com/drover-run/drover/shared/boundary"
	"github.com/drover-run/drover/shared/environment"
	"github.com/drover-run/drover/shared/executions"
	"github.com/drover-run/drover/shared/resume"
	"github.com/drover-run/drover/shared/stacks"
	"github.com/drover-run/drover/shared/store"
)

func main() {
	cfg := environment.AWS()
	s3 := environment.S3(cfg)
	specs := store.NewBucket(s3, environment.Must(environment.SpecsBucket))
	state := store.NewState(store.NewBucket(s3, environment.Must(environment.StateBucket)), time.Now)
	cloud := stacks.New(cloudformation.NewFromConfig(cfg), nil, "")
	machine := executions.New(sfn.NewFromConfig(cfg), environment.Must(environment.ConvergeARN))
	h := &handler.Handler{
		Specs: specs, State: state, Stacks: cloud,
		Resume:     &resume.Resumer{Steps: machine, Stacks: cloud, State: state, Now: time.Now},
		Executions: machine,
		Admit:      &admit.Handler{Specs: specs, State: state, Machine: machine, Now: time.Now},
		// S3's events usually come within seconds.
		Patience: 2 * time.Minute, Now: time.Now,
	}
	lambda.Start(boundary.Wrap("sweep", h.Handle))
}

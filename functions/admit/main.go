// The admit function reads uploaded specs and starts to converge their clusters.
package main

import (
	"os"
	"time"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-sdk-go-v2/service/sfn"

	"github.com/drover-run/drover/functions/admit/handler"
	"github.com/drover-run/drover/shared/aws/stepfunctions"
	"github.com/drover-run/drover/shared/boundary"
	"github.com/drover-run/drover/shared/environment"
	"github.com/drover-run/drover/shared/notify"
	"github.com/drover-run/drover/shared/store"
)

func main() {
	cfg := environment.AWS()
	s3 := environment.S3(cfg)
	state := store.NewState(store.NewBucket(s3, environment.Must(environment.StateBucket)), time.Now)
	listeners := notify.New(cfg, environment.Must(environment.TopicARN), os.Stdout, time.Now)
	state.Tell, state.TellUnread = listeners.Tell, listeners.TellUnread
	h := &handler.Handler{
		Specs:   store.NewBucket(s3, environment.Must(environment.SpecsBucket)),
		State:   state,
		Machine: stepfunctions.New(sfn.NewFromConfig(cfg), environment.Must(environment.ConvergeARN)),
		Now:     time.Now,
	}
	lambda.Start(boundary.Wrap("admit", h.Handle))
}

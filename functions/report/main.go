// The report function ends a round of converging with a status that people can read.
package main

import (
	"os"
	"time"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-sdk-go-v2/service/sns"

	"github.com/drover-run/drover/functions/report/handler"
	"github.com/drover-run/drover/shared/boundary"
	"github.com/drover-run/drover/shared/environment"
	"github.com/drover-run/drover/shared/notify"
	"github.com/drover-run/drover/shared/store"
)

func main() {
	cfg := environment.AWS()
	s3 := environment.S3(cfg)
	h := &handler.Handler{
		Specs: store.NewBucket(s3, environment.Must(environment.SpecsBucket)),
		State: store.NewState(store.NewBucket(s3, environment.Must(environment.StateBucket)), time.Now),
		Topic: notify.New(sns.NewFromConfig(cfg), environment.Must(environment.TopicARN)), Metrics: os.Stdout, Now: time.Now,
	}
	lambda.Start(boundary.Wrap("report", h.Handle))
}

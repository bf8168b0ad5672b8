// The report function ends a round of converging with a status that people can read.
package main

import (
	"os"
	"time"

	"github.com/aws/aws-lambda-go/lambda"

	"github.com/drover-run/drover/functions/report/handler"
	"github.com/drover-run/drover/shared/boundary"
	"github.com/drover-run/drover/shared/environment"
	"github.com/drover-run/drover/shared/notify"
	"github.com/drover-run/drover/shared/store"
)

func main() {
	cfg := environment.AWS()
	s3 := environment.S3(cfg)
	state := store.NewState(store.NewBucket(s3, environment.Must(environment.StateBucket)), time.Now)
	state.Tell = notify.New(cfg, environment.Must(environment.TopicARN), os.Stdout, time.Now).Tell
	h := &handler.Handler{
		Specs: store.NewBucket(s3, environment.Must(environment.SpecsBucket)), State: state, Now: time.Now,
	}
	lambda.Start(boundary.Wrap("report", h.Handle))
}

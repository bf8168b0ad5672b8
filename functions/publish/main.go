// The publish function looks at uploaded releases: whether everything that they name is there.
package main

import (
	"os"
	"time"

	"github.com/aws/aws-lambda-go/lambda"
	awseks "github.com/aws/aws-sdk-go-v2/service/eks"

	"github.com/drover-run/drover/functions/publish/handler"
	"github.com/drover-run/drover/shared/aws/ec2"
	"github.com/drover-run/drover/shared/aws/eks"
	"github.com/drover-run/drover/shared/aws/s3"
	"github.com/drover-run/drover/shared/lambdaruntime"
	"github.com/drover-run/drover/shared/notify"
	"github.com/drover-run/drover/shared/store"
)

func main() {
	cfg := lambdaruntime.AWS()
	bucketClient := s3.NewClient(cfg)
	state := store.NewState(s3.NewBucket(bucketClient, lambdaruntime.Must(lambdaruntime.StateBucket)), time.Now)
	listeners := notify.New(cfg, lambdaruntime.Must(lambdaruntime.TopicARN), os.Stdout, time.Now)
	state.TellRelease, state.TellUnread = listeners.TellRelease, listeners.TellUnread
	h := &handler.Handler{
		Specs:    s3.NewBucket(bucketClient, lambdaruntime.Must(lambdaruntime.SpecsBucket)),
		State:    state,
		Versions: eks.New(awseks.NewFromConfig(cfg)),
		Images:   ec2.New(cfg),
		Now:      time.Now,
	}
	lambda.Start(lambdaruntime.Wrap("publish", h.Handle))
}

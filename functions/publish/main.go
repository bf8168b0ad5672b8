// The publish function checks uploaded releases: whether everything that they name exists.
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
	"github.com/drover-run/drover/shared/releases"
	"github.com/drover-run/drover/shared/store"
)

func main() {
	cfg := lambdaruntime.AWS()
	bucketClient := s3.NewClient(cfg)
	notifier := notify.New(cfg, lambdaruntime.Must(lambdaruntime.TopicARN), os.Stdout, time.Now)
	state := store.NewState(s3.NewBucket(bucketClient, lambdaruntime.Must(lambdaruntime.StateBucket)), notifier, time.Now)
	specs := s3.NewBucket(bucketClient, lambdaruntime.Must(lambdaruntime.SpecsBucket))
	checker := &releases.Checker{
		Specs: specs, State: state, EKS: eks.New(awseks.NewFromConfig(cfg)), Images: ec2.New(cfg), Now: time.Now,
	}
	h := &handler.Handler{Checker: checker, State: state, Specs: specs}
	lambda.Start(lambdaruntime.Wrap("publish", h.Handle))
}

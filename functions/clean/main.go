// The clean function deletes what Kubernetes created in the account for a cluster that is being deleted.
package main

import (
	"github.com/aws/aws-lambda-go/lambda"

	"github.com/drover-run/drover/functions/clean/setup"
	"github.com/drover-run/drover/shared/lambdaruntime"
)

func main() {
	lambda.Start(lambdaruntime.Wrap("clean", setup.New(lambdaruntime.AWS(), lambdaruntime.Process()).Handle))
}

// The plan function decides what a cluster needs.
package main

import (
	"github.com/aws/aws-lambda-go/lambda"

	"github.com/drover-run/drover/functions/plan/setup"
	"github.com/drover-run/drover/shared/lambdaruntime"
)

func main() {
	lambda.Start(lambdaruntime.Wrap("plan", setup.New(lambdaruntime.AWS(), lambdaruntime.Process()).Handle))
}

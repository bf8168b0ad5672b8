// The sweep function handles missed events, and audits clusters for drift.
package main

import (
	"github.com/aws/aws-lambda-go/lambda"

	"github.com/drover-run/drover/functions/sweep/setup"
	"github.com/drover-run/drover/shared/lambdaruntime"
)

func main() {
	lambda.Start(lambdaruntime.Wrap("sweep", setup.New(lambdaruntime.AWS(), lambdaruntime.Process()).Handle))
}

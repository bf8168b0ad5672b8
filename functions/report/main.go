// The report function ends a run of drover-converge and records the result in the status.
package main

import (
	"github.com/aws/aws-lambda-go/lambda"

	"github.com/drover-run/drover/functions/report/setup"
	"github.com/drover-run/drover/shared/lambdaruntime"
)

func main() {
	lambda.Start(lambdaruntime.Wrap("report", setup.New(lambdaruntime.AWS(), lambdaruntime.Process()).Handle))
}

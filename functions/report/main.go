// The report function ends an execution of drover-converge and records the verdict in the status.
package main

import (
	"github.com/aws/aws-lambda-go/lambda"

	"github.com/drover-run/drover/functions/report/setup"
	"github.com/drover-run/drover/shared/lambdaruntime"
)

func main() {
	lambda.Start(lambdaruntime.Wrap("report", setup.New(lambdaruntime.AWS(), lambdaruntime.Process()).Handle))
}

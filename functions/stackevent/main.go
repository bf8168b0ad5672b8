// The stackevent function records stack statuses and resumes the step that waits for a stack.
package main

import (
	"github.com/aws/aws-lambda-go/lambda"

	"github.com/drover-run/drover/functions/stackevent/setup"
	"github.com/drover-run/drover/shared/lambdaruntime"
)

func main() {
	lambda.Start(lambdaruntime.Wrap("stackevent", setup.New(lambdaruntime.AWS(), lambdaruntime.Process()).Handle))
}

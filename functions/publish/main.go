// The publish function checks uploaded releases: whether everything that they name exists.
package main

import (
	"github.com/aws/aws-lambda-go/lambda"

	"github.com/drover-run/drover/functions/publish/setup"
	"github.com/drover-run/drover/shared/lambdaruntime"
)

func main() {
	lambda.Start(lambdaruntime.Wrap("publish", setup.New(lambdaruntime.AWS(), lambdaruntime.Process()).Handle))
}

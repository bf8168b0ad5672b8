// The join function puts an instance into service once its node is Ready.
package main

import (
	"github.com/aws/aws-lambda-go/lambda"

	"github.com/drover-run/drover/functions/join/setup"
	"github.com/drover-run/drover/shared/lambdaruntime"
)

func main() {
	lambda.Start(lambdaruntime.Wrap("join", setup.New(lambdaruntime.AWS(), lambdaruntime.Process()).Handle))
}

// The drain function evicts the pods of a node before the node terminates, one slice a call.
package main

import (
	"github.com/aws/aws-lambda-go/lambda"

	"github.com/drover-run/drover/functions/drain/setup"
	"github.com/drover-run/drover/shared/lambdaruntime"
)

func main() {
	lambda.Start(lambdaruntime.Wrap("drain", setup.New(lambdaruntime.AWS(), lambdaruntime.Process()).Handle))
}

// Package notices builds the notifier of a function. Only the setup packages of functions use it. It is separate from package documents:
// functions that send no notices then link no client of SNS or EventBridge.
package notices

import (
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/drover-run/drover/shared/aws/eventbridge"
	"github.com/drover-run/drover/shared/aws/sns"
	"github.com/drover-run/drover/shared/lambdaruntime"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/notification"
)

// New returns a notifier that sends to drover's topic and to its event bus.
func New(cfg aws.Config, env lambdaruntime.Env) *notification.Notifier {
	topic, bus := sns.NewTopic(cfg, env.Must(lambdaruntime.TopicARN)), eventbridge.NewBus(cfg, names.Bus)
	return notification.New(topic, bus, env.Output, time.Now)
}

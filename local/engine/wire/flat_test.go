package wire_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/local/engine/wire"
)

// Lists and maps of SQS have no enclosing element in the Query protocol.
// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_GetQueueAttributes.html
func TestFlatListsAndMaps(t *testing.T) {
	service := wire.Service{
		Name: "sqs", Protocol: wire.JSON10, TargetPrefix: "AmazonSQS", Version: "2012-11-05",
		Flat: map[string]string{"AttributeName": "AttributeNames", "Attribute": "Attributes", "Tag": "Tags"},
	}
	cfg := serve(t, service, "Echo", func(_ context.Context, c *wire.Call) (any, error) {
		var in struct {
			AttributeNames   []string
			Attributes, Tags map[string]string
		}
		if err := c.Decode(&in); err != nil {
			return nil, err
		}
		return struct {
			Names      []string          `xml:"Name,flat"`
			Attributes map[string]string `xml:"Attribute,flat"`
			Tags       map[string]string
		}{in.AttributeNames, in.Attributes, in.Tags}, nil
	})
	got := post(t, *cfg.BaseEndpoint, "Action=Echo&Version=2012-11-05&AttributeName.2=b&AttributeName.1=a"+
		"&Attribute.1.Name=x&Attribute.1.Value=%3C1%3E&Tag.1.Key=k&Tag.1.Value=v")
	require.Contains(t, got, "<EchoResult><Name>a</Name><Name>b</Name><Attribute><Name>x</Name><Value>&lt;1&gt;</Value></Attribute>"+
		"<Tags><entry><key>k</key><value>v</value></entry></Tags></EchoResult>")
	for _, body := range []string{"Attribute.x.Name=a", "Attribute.1.Value=a", "Attribute.1=a"} {
		require.Contains(t, post(t, *cfg.BaseEndpoint, "Action=Echo&"+body), "ValidationException", body)
	}
}

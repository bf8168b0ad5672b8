package pattern

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// The example event of https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-event-patterns.html
const instance = `{
  "version": "0", "id": "6a7e8feb-b491-4cf7-a9f1-bf3703467718", "detail-type": "EC2 Instance State-change Notification",
  "source": "aws.ec2", "account": "111122223333", "time": "2017-12-22T18:43:48Z", "region": "us-west-1",
  "resources": ["arn:aws:ec2:us-west-1:123456789012:instance/i-1234567890abcdef0"],
  "detail": {"instance-id": "i-1234567890abcdef0", "state": "terminated"}}`

// The example event of https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-create-pattern-operators.html
const group = `{
  "version": "0", "id": "3e3c153a-8339-4e30-8c35-687ebef853fe", "detail-type": "EC2 Instance Launch Successful",
  "source": "aws.autoscaling", "account": "123456789012", "time": "2015-11-11T21:31:47Z", "region": "us-east-1", "resources": [],
  "detail": {"eventVersion": "", "responseElements": null, "c-count": 5, "d-count": 3, "x-limit": 301.8, "source-ip": "10.0.0.7",
    "FileName": "dir/image.PNG", "state": "running", "Location": "New York",
    "tags": ["one", "two"], "parts": [{"name": "a", "size": 1}, {"name": "b", "size": 2}]}}`

func TestMatch(t *testing.T) {
	for name, test := range map[string]struct {
		pattern, event string
		want           bool
	}{
		"source": {`{"source":["aws.ec2"]}`, instance, true},
		"several fields all match": {
			`{"source":["aws.ec2"],"detail-type":["EC2 Instance State-change Notification"],"detail":{"state":["terminated"]}}`, instance, true,
		},
		"one field does not":   {`{"source":["aws.ec2"],"detail":{"state":["running"]}}`, instance, false},
		"one value of several": {`{"detail":{"state":["running","terminated"]}}`, instance, true},
		"an element of an array": {
			`{"resources":["arn:aws:ec2:us-west-1:123456789012:instance/i-1234567890abcdef0"]}`, instance, true,
		},
		"case counts":                       {`{"source":["AWS.ec2"]}`, instance, false},
		"a field that is not there":         {`{"detail":{"other":["x"]}}`, instance, false},
		"the empty string":                  {`{"detail":{"eventVersion":[""]}}`, group, true},
		"null":                              {`{"detail":{"responseElements":[null]}}`, group, true},
		"null is not the empty string":      {`{"detail":{"responseElements":[""]}}`, group, false},
		"a number":                          {`{"detail":{"c-count":[5]}}`, group, true},
		"a number by its written form":      {`{"detail":{"c-count":[5.0]}}`, group, false},
		"a number is no string":             {`{"detail":{"c-count":["5"]}}`, group, false},
		"prefix":                            {`{"time":[{"prefix":"2015-11-11"}]}`, group, true},
		"another prefix":                    {`{"time":[{"prefix":"2017-10-02"}]}`, group, false},
		"prefix, ignoring case":             {`{"detail":{"Location":[{"prefix":{"equals-ignore-case":"NEW"}}]}}`, group, true},
		"suffix":                            {`{"detail":{"FileName":[{"suffix":".PNG"}]}}`, group, true},
		"another suffix":                    {`{"detail":{"FileName":[{"suffix":".png"}]}}`, group, false},
		"suffix, ignoring case":             {`{"detail":{"FileName":[{"suffix":{"equals-ignore-case":".png"}}]}}`, group, true},
		"equals-ignore-case":                {`{"detail-type":[{"equals-ignore-case":"ec2 instance launch successful"}]}`, group, true},
		"wildcard":                          {`{"detail":{"FileName":[{"wildcard":"dir/*.PNG"}]}}`, group, true},
		"wildcard that matches nothing":     {`{"detail":{"FileName":[{"wildcard":"dir/image.PNG*"}]}}`, group, true},
		"wildcard needs both ends":          {`{"detail":{"FileName":[{"wildcard":"dir/*.PNGX"}]}}`, group, false},
		"wildcards do not share characters": {`{"a":[{"wildcard":"ab*ba"}]}`, `{"a":"aba"}`, false},
		"an escaped star":                   {`{"a":[{"wildcard":"a\\*b*"}]}`, `{"a":"a*bc"}`, true},
		"an escaped star is no wildcard":    {`{"a":[{"wildcard":"a\\*b"}]}`, `{"a":"axb"}`, false},
		"several wildcards":                 {`{"a":[{"wildcard":"*/lib/*"}]}`, `{"a":"usr/lib/x"}`, true},
		"anything-but a value":              {`{"detail":{"state":["initializing",{"anything-but":"initializing"}]}}`, group, true},
		"anything-but the value":            {`{"detail":{"state":[{"anything-but":"running"}]}}`, group, false},
		"anything-but values":               {`{"detail":{"state":[{"anything-but":["stopped","overloaded"]}]}}`, group, true},
		"anything-but numbers":              {`{"detail":{"x-limit":[{"anything-but":[100,200,300]}]}}`, group, true},
		"anything-but the number":           {`{"detail":{"x-limit":[{"anything-but":301.8}]}}`, group, false},
		"anything-but ignoring case": {
			`{"detail":{"state":[{"anything-but":{"equals-ignore-case":["RUNNING","stopped"]}}]}}`, group, false,
		},
		"anything-but prefix":          {`{"detail":{"state":[{"anything-but":{"prefix":"init"}}]}}`, group, true},
		"anything-but the prefix":      {`{"detail":{"state":[{"anything-but":{"prefix":["init","run"]}}]}}`, group, false},
		"anything-but suffix":          {`{"detail":{"FileName":[{"anything-but":{"suffix":[".txt",".rtf"]}}]}}`, group, true},
		"anything-but wildcard":        {`{"detail":{"FileName":[{"anything-but":{"wildcard":"*/*.PNG"}}]}}`, group, false},
		"anything-but needs the field": {`{"detail":{"none":[{"anything-but":"x"}]}}`, group, false},
		"anything-but of one element":  {`{"detail":{"tags":[{"anything-but":"one"}]}}`, group, true},
		"numeric equality":             {`{"detail":{"c-count":[{"numeric":["=",5.0]}]}}`, group, true},
		"numeric range": {
			`{"detail":{"c-count":[{"numeric":[">",0,"<=",5]}],"d-count":[{"numeric":["<",10]}],"x-limit":[{"numeric":["=",3.018e2]}]}}`,
			group, true,
		},
		"out of a numeric range":            {`{"detail":{"c-count":[{"numeric":[">",0,"<",5]}]}}`, group, false},
		"numeric takes no strings":          {`{"a":[{"numeric":["=",5]}]}`, `{"a":"5"}`, false},
		"an address in a block":             {`{"detail":{"source-ip":[{"cidr":"10.0.0.0/24"}]}}`, group, true},
		"an address out of a block":         {`{"detail":{"source-ip":[{"cidr":"10.0.1.0/24"}]}}`, group, false},
		"an IPv6 address":                   {`{"a":[{"cidr":"2001:db8::/32"}]}`, `{"a":"2001:db8::1"}`, true},
		"exists":                            {`{"detail":{"state":[{"exists":true}]}}`, group, true},
		"exists, of a null":                 {`{"detail":{"responseElements":[{"exists":true}]}}`, group, true},
		"exists is about leaves":            {`{"detail":[{"exists":true}]}`, group, false},
		"exists not":                        {`{"detail":{"none":[{"exists":false}]}}`, group, true},
		"exists not, but it does":           {`{"detail":{"state":[{"exists":false}]}}`, group, false},
		"exists not, below what is missing": {`{"none":{"deep":[{"exists":false}]}}`, group, true},
		"$or, the first": {
			`{"detail":{"$or":[{"c-count":[{"numeric":[">",0,"<=",5]}]},{"d-count":[{"numeric":["<",1]}]}]}}`, group, true,
		},
		"$or, none":                       {`{"detail":{"$or":[{"c-count":[6]},{"d-count":[4]},{"x-limit":[1]}]}}`, group, false},
		"$or with a field that fails":     {`{"source":["x"],"$or":[{"region":["us-east-1"]},{"account":["1"]}]}`, group, false},
		"$or across levels":               {`{"$or":[{"source":["x"]},{"detail":{"state":["running"]}}]}`, group, true},
		"elements of an array of objects": {`{"detail":{"parts":{"name":["b"]}}}`, group, true},
		"the same element must match":     {`{"detail":{"parts":{"name":["a"],"size":[2]}}}`, group, false},
		"an empty array is not there":     {`{"resources":[{"exists":false}]}`, group, true},
		"a value or a condition":          {`{"detail":{"state":["stopped",{"prefix":"run"}]}}`, group, true},
		"a boolean":                       {`{"a":[true]}`, `{"a":true}`, true},
		"drover's stacks and no others by name": {
			`{"detail":{"stack-id":[{"prefix":"arn:aws:cloudformation:eu-central-1:111122223333:stack/drover-"}]}}`,
			`{"detail":{"stack-id":"arn:aws:cloudformation:eu-central-1:111122223333:stack/droverly/1"}}`, false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := Parse([]byte(test.pattern))
			require.NoError(t, err)
			got, err := p.Match([]byte(test.event))
			require.NoError(t, err)
			require.Equal(t, test.want, got)
		})
	}
}

func TestParseRejects(t *testing.T) {
	for name, test := range map[string]struct{ pattern, reason string }{
		"no JSON":                       {`{`, "no JSON"},
		"two values":                    {`{"a":["b"]}{}`, "data after"},
		"an array":                      {`["a"]`, "not an object"},
		"an empty pattern":              {`{}`, "empty objects"},
		"a bare value":                  {`{"source":"aws.ec2"}`, `"source" must be an object or an array`},
		"an empty array":                {`{"source":[]}`, "empty arrays"},
		"an array in an array":          {`{"source":[["a"]]}`, "array inside of an array"},
		"an unknown operator":           {`{"source":[{"regex":"a"}]}`, "unrecognized match type regex"},
		"two operators in one":          {`{"source":[{"prefix":"a","suffix":"b"}]}`, "only one key"},
		"an empty prefix":               {`{"source":[{"prefix":""}]}`, "empty string"},
		"a prefix that is a number":     {`{"source":[{"prefix":1}]}`, "must be a string"},
		"consecutive wildcards":         {`{"source":[{"wildcard":"a**"}]}`, "consecutive"},
		"a wrong escape":                {`{"source":[{"wildcard":"a\\b"}]}`, "may be escaped"},
		"numeric without a number":      {`{"a":[{"numeric":["<","5"]}]}`, "must be a number"},
		"numeric with a wrong operator": {`{"a":[{"numeric":["!=",5]}]}`, "operator must be"},
		"numeric the wrong way round":   {`{"a":[{"numeric":["<",5,">",1]}]}`, "lower bound"},
		"numeric out of bounds":         {`{"a":[{"numeric":["<",5000000001]}]}`, "between"},
		"numeric of one":                {`{"a":[{"numeric":[5]}]}`, "pairs"},
		"exists with a string":          {`{"a":[{"exists":"true"}]}`, "true or false"},
		"a wrong block":                 {`{"a":[{"cidr":"10.0.0.0/33"}]}`, "IPv4 or IPv6"},
		"anything-but of nothing":       {`{"a":[{"anything-but":[]}]}`, "at least one"},
		"anything-but a boolean":        {`{"a":[{"anything-but":true}]}`, "strings or numbers"},
		"anything-but numeric":          {`{"a":[{"anything-but":{"numeric":["=",1]}}]}`, "it takes one of"},
		"equals-ignore-case a number":   {`{"a":[{"equals-ignore-case":1}]}`, "must be a string"},
		"a bad alternative":             {`{"$or":[{"a":"b"},{"c":["d"]}]}`, `"a" must be`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse([]byte(test.pattern))
			require.ErrorContains(t, err, test.reason)
			require.ErrorContains(t, err, "Event pattern is not valid. Reason: ")
		})
	}
}

func TestMatchRejectsInvalidEvents(t *testing.T) {
	p, err := Parse([]byte(`{"a":["b"]}`))
	require.NoError(t, err)
	for _, event := range []string{``, `[]`, `{"a":"b"} x`} {
		_, err := p.Match([]byte(event))
		require.Error(t, err, event)
	}
}

package wire

import (
	"encoding/json"
	"net/url"
	"testing"
	"time"
)

// For any input, decoding ends with a value or an *Error.
func FuzzDecode(f *testing.F) {
	f.Add([]byte("Action=A&Names.member.1=a&Names.member.02=b&Tags.entry.1.key=k&Tags.entry.1.value=v&When=2026-01-01"), byte(0))
	f.Add([]byte("Action=A&Inner.Count=1&Inner=&List.1.Key=a&List.x=b"), byte(0))
	f.Add([]byte(`{"Names":["a",null],"Inner":{"Count":1e3},"When":1.5,"Bytes":"YQ==","Raw":{"a":[]},"Any":[1]}`), byte(1))
	f.Add([]byte("\xa1eNames\x81aa"), byte(2))
	f.Fuzz(func(t *testing.T, body []byte, protocol byte) {
		var params map[string]any
		var err error
		b := binder{service: "fuzz"}
		switch protocol % 3 {
		case 0:
			b.queryProtocol = true
			_, params, err = parseQuery(url.Values{}, body)
		case 1:
			params, err = parseJSON(body)
		case 2:
			params, err = parseCBOR(body)
		}
		var into struct {
			Names []string
			Tags  map[string]string
			Inner *struct{ Count *int }
			List  []struct{ Key string }
			When  time.Time
			Bytes []byte
			Raw   json.RawMessage
			Any   any
			Flag  bool
			Rate  float64
		}
		if err == nil {
			err = b.bindStruct(params, &into)
		}
		if _, ok := err.(*Error); err != nil && !ok {
			t.Fatalf("an error of no code: %v", err)
		}
	})
}

package kube

// Typed clients of the API groups that drover reads most. They use protobuf, which costs far less than JSON when hundreds
// of pods change at once. The complete clientset of client-go would double the size of a function.

import (
	"net/http"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
)

// Typed holds a client for each API group, and the connection that they share.
type Typed struct {
	Core, Policy, Storage rest.Interface
	HTTP                  *http.Client
}

var (
	scheme      = newScheme()
	serializers = serializer.NewCodecFactory(scheme).WithoutConversion()
	// Parameters encodes the options of the typed clients' requests.
	Parameters = runtime.NewParameterCodec(scheme)
)

func newScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, policyv1.AddToScheme, storagev1.AddToScheme} {
		if err := add(scheme); err != nil {
			panic(err) // two types have one name, which no input can cause
		}
	}
	return scheme
}

// newTyped shares one connection between the clients.
func newTyped(config *rest.Config) (Typed, error) {
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return Typed{}, err
	}
	of := func(group schema.GroupVersion, path string) (rest.Interface, error) {
		c := rest.CopyConfig(config)
		c.GroupVersion, c.APIPath = &group, path
		c.NegotiatedSerializer = serializers
		c.ContentType = runtime.ContentTypeProtobuf
		c.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
		return rest.RESTClientForConfigAndClient(c, client)
	}
	t := Typed{HTTP: client}
	for _, each := range []struct {
		client *rest.Interface
		group  schema.GroupVersion
		path   string
	}{
		{&t.Core, corev1.SchemeGroupVersion, "/api"},
		{&t.Policy, policyv1.SchemeGroupVersion, "/apis"},
		{&t.Storage, storagev1.SchemeGroupVersion, "/apis"},
	} {
		if *each.client, err = of(each.group, each.path); err != nil {
			return Typed{}, err
		}
	}
	return t, nil
}

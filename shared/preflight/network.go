package preflight

// EndpointService is a service of AWS that a VPC can have interface endpoints of.
type EndpointService struct {
	// Zones in which it has them, by name. PrivateName is the name that an endpoint resolves in the VPC, or "".
	Zones       []string
	PrivateName string
}

//go:build tools

package builds

import _ "sigs.k8s.io/kwok/cmd/kwok"

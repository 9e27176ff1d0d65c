package controllers

// What the operator needs for its own work, whatever the providers bring. It becomes the role
// "operator" of charts/capstan; the permissions to install providers and to act as ServiceAccounts
// are roles of their own there. What is done for a provider is done with the permissions to install
// it, which package permissions lists.
//
// The resources themselves, with finalizer and status:
// +kubebuilder:rbac:groups=operator.cluster.x-k8s.io,resources=addonproviders,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=operator.cluster.x-k8s.io,resources=bootstrapproviders,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=operator.cluster.x-k8s.io,resources=controlplaneproviders,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=operator.cluster.x-k8s.io,resources=coreproviders,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=operator.cluster.x-k8s.io,resources=infrastructureproviders,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=operator.cluster.x-k8s.io,resources=ipamproviders,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=operator.cluster.x-k8s.io,resources=runtimeextensionproviders,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=operator.cluster.x-k8s.io,resources=addonproviders/status,verbs=patch
// +kubebuilder:rbac:groups=operator.cluster.x-k8s.io,resources=bootstrapproviders/status,verbs=patch
// +kubebuilder:rbac:groups=operator.cluster.x-k8s.io,resources=controlplaneproviders/status,verbs=patch
// +kubebuilder:rbac:groups=operator.cluster.x-k8s.io,resources=coreproviders/status,verbs=patch
// +kubebuilder:rbac:groups=operator.cluster.x-k8s.io,resources=infrastructureproviders/status,verbs=patch
// +kubebuilder:rbac:groups=operator.cluster.x-k8s.io,resources=ipamproviders/status,verbs=patch
// +kubebuilder:rbac:groups=operator.cluster.x-k8s.io,resources=runtimeextensionproviders/status,verbs=patch
//
// Sources:
// +kubebuilder:rbac:groups="",resources=configmaps,verbs=get;list;watch
//
// Variables, and a watch on Helm's storage:
// +kubebuilder:rbac:groups="",resources=secrets,verbs=get;list;watch
//
// Pull secrets, for providers from registries:
// +kubebuilder:rbac:groups="",resources=serviceaccounts,verbs=get
//
// Why a manager does not run, and whether that of cluster-api-operator does:
// +kubebuilder:rbac:groups="",resources=pods,verbs=list
//
// Whether the Namespace of a provider is being deleted:
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=get
//
// clusterctl's inventory, which the operator keeps, and in which it finds providers that others have installed:
// +kubebuilder:rbac:groups=clusterctl.cluster.x-k8s.io,resources=providers,verbs=get;list;create;patch;delete
//
// CRDs of providers are only read, and applied with the permissions to install. The operator's own
// are brought to its version at start:
// +kubebuilder:rbac:groups=apiextensions.k8s.io,resources=customresourcedefinitions,verbs=get;list;watch
// +kubebuilder:rbac:groups=apiextensions.k8s.io,resources=customresourcedefinitions,resourceNames=addonproviders.operator.cluster.x-k8s.io;bootstrapproviders.operator.cluster.x-k8s.io;controlplaneproviders.operator.cluster.x-k8s.io;coreproviders.operator.cluster.x-k8s.io;infrastructureproviders.operator.cluster.x-k8s.io;ipamproviders.operator.cluster.x-k8s.io;runtimeextensionproviders.operator.cluster.x-k8s.io,verbs=patch
//
// How the admission policy of the chart recognizes other operators. There is no such resource:
// +kubebuilder:rbac:groups=capstan.dev,resources=operatordata,verbs=update
//
// Events, of the operator and of leader election:
// +kubebuilder:rbac:groups="";events.k8s.io,resources=events,verbs=create;patch
//
// Charts, which only the operator's namespace has:
// +kubebuilder:rbac:groups="",resources=configmaps,namespace=operator,verbs=get;list;create;update;delete
//
// What the operator publishes about itself, in a ConfigMap that the chart creates:
// +kubebuilder:rbac:groups="",resources=configmaps,resourceNames=capstan-configuration,namespace=operator,verbs=patch
//
// Leader election, in the operator's namespace:
// +kubebuilder:rbac:groups=coordination.k8s.io,resources=leases,namespace=operator,verbs=get;create;update

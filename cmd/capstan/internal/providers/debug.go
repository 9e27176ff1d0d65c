package providers

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/cmd/capstan/internal/cli"
	"github.com/capstan-project/capstan/controllers"
	"github.com/capstan-project/capstan/controllers/facts"
	"github.com/capstan-project/capstan/controllers/health"
)

// A log in the archive has at most maxLogBytes from its last maxLogLines lines.
const (
	maxLogLines = int64(10000)
	maxLogBytes = int64(4 << 20)
)

// maxDebugPods and maxDebugEvents limit what is collected of a namespace.
const (
	maxDebugPods   = 100
	maxDebugEvents = 500
)

// debugOptions are the flags of `debug`.
type debugOptions struct {
	*cli.Options

	cluster     *cli.ClusterFlags
	planner     *cli.PlannerFlags
	destination string
	managerLogs bool
}

// NewDebugCommand returns `capstan debug` for a program of this version.
func NewDebugCommand(options *cli.Options) *cobra.Command {
	o := &debugOptions{Options: options}
	cmd := &cobra.Command{
		Use:   "debug [PROVIDER...]",
		Short: "Collect what is needed to find out why providers do not work",
		Long: `Collect what is needed to find out why providers do not work, in an archive for a bug report: versions, the
operator's flags, Deployment and log, and for each provider its resource, status, history and pods, the events of its
namespace, and what the operator decides about it. Without arguments, collect that for all providers.

The archive has no Secrets, values of variables, Helm values, patches or values of environment variables. Names,
messages and logs are as they are: read them before you share the archive. The command lists the files that it has
written, and what could not be read. It changes nothing in the cluster.`,
		Example: `  capstan debug
  capstan debug infrastructure-aws --manager-logs`,
		ValidArgsFunction: cli.CompleteProvider,
		RunE:              cli.Run(o.run),
	}

	flags := cmd.Flags()
	o.cluster = cli.AddClusterFlags(flags)
	o.planner = cli.AddPlannerFlags(flags)
	flags.StringVar(&o.destination, "destination", "",
		"File to write, which must not exist. Default: capstan-debug-TIME.tar.gz in the current folder.")
	flags.BoolVar(&o.managerLogs, "manager-logs", false, "Include the logs of the providers' pods.")

	return cmd
}

func (o *debugOptions) run(ctx context.Context, args []string) error {
	cluster, err := o.cluster.Connect()
	if err != nil {
		return err
	}

	now := time.Now().UTC()
	if o.destination == "" {
		o.destination = "capstan-debug-" + now.Format("20060102T150405Z") + ".tar.gz"
	}

	selected, err := cluster.Providers(ctx)
	if len(args) > 0 {
		selected, err = cluster.FindAll(ctx, args)
	}

	if err != nil {
		return err
	}

	cli.SilenceLibraries() // they log errors of requests that the command no longer waits for

	pods, err := kubernetes.NewForConfig(cluster.Config)
	if err != nil {
		return err
	}

	c := &collector{debugOptions: o, cluster: cluster, pods: pods}
	c.collectVersions(ctx)
	c.collectOperator(ctx)

	for _, p := range selected {
		c.collectProvider(ctx, p)
	}

	c.explain(ctx, selected)

	if ctx.Err() != nil {
		return ctx.Err()
	}

	if err := c.archive.write(o.destination, now); err != nil {
		return err
	}

	return o.report(&c.archive)
}

// report lists what the archive contains.
func (o *debugOptions) report(a *archive) error {
	printer := &cli.Printer{Writer: o.Out, Format: cli.FormatTable}
	rows := make([]cli.Row, 0, len(a.files))

	for _, f := range a.files {
		rows = append(rows, cli.Row{Cells: []string{f.name, cli.Size(int64(len(f.content)))}})
	}

	if err := printer.Table([]string{"FILE", "SIZE"}, rows); err != nil {
		return err
	}

	for _, missing := range a.missing {
		o.Warnf("not included: %s", missing)
	}

	o.Hintf("\nWrote %s. Read the files before you share them: names, messages and logs are as they are in the cluster.",
		o.destination)

	return nil
}

// collector reads what the archive contains. What cannot be read is listed in the archive.
type collector struct {
	*debugOptions

	cluster *cli.Cluster
	pods    kubernetes.Interface
	archive archive
}

// collectVersions adds the versions of this program, of Kubernetes, and of cert-manager and the operator if they are
// installed.
func (c *collector) collectVersions(ctx context.Context) {
	versions := map[string]string{"command line": c.Version}
	where := platform{Config: c.cluster.Config, Client: c.cluster.Client, Namespace: c.planner.OperatorNamespace()}

	components, err := where.read(ctx, c.Version)
	if err != nil {
		c.archive.lacks("versions", err)
	}

	for _, found := range components {
		versions[found.Name] = cmp.Or(found.Installed, "unknown")
	}

	c.addYAML("versions.yaml", versions)
}

// collectConfiguration adds what the operator in a namespace has published about itself, with all its flags.
func (c *collector) collectConfiguration(ctx context.Context, namespace string) {
	const what = "the operator's configuration"

	published, err := controllers.ReadPublished(ctx, c.cluster.Client, namespace)
	if err != nil {
		c.archive.lacks(what, err)
		return
	}

	if published == nil {
		c.archive.lacks(what, errors.New("it has published none in namespace "+namespace))
		return
	}

	for name, value := range published.Flags {
		published.Flags[name] = facts.WithoutCredentials(value)
	}

	c.addYAML("operator/configuration.yaml", published)
}

// collectOperator adds the operator's flags, Deployment, pods, events and logs.
func (c *collector) collectOperator(ctx context.Context) {
	deployment, err := cli.FindOperator(ctx, c.cluster.Client, c.planner.OperatorNamespace())
	if err != nil {
		c.archive.lacks("the operator's flags, Deployment, pods, events and logs", err)
		return
	}

	deployment.SetGroupVersionKind(deploymentKind)

	content, err := withoutValues(deployment)
	if err != nil {
		c.archive.lacks("the operator's Deployment", err)
	} else {
		c.addYAML("operator/deployment.yaml", content)
	}

	c.collectConfiguration(ctx, deployment.Namespace)

	selector, err := metav1.LabelSelectorAsSelector(deployment.Spec.Selector)
	if err != nil {
		c.archive.lacks("the operator's pods", err)
	} else {
		c.collectPods(ctx, "operator", deployment.Namespace, true, selector)
	}

	c.collectEvents(ctx, "operator", deployment.Namespace)
}

// collectProvider adds a provider's resource, status, history, pods and events.
func (c *collector) collectProvider(ctx context.Context, p v1alpha2.Provider) {
	folder := folderOf(p)

	content, err := withoutValues(p)
	if err != nil {
		c.archive.lacks("the resource of "+v1alpha2.FullName(p), err)
	} else {
		c.addYAML(path.Join(folder, "resource.yaml"), content)
	}

	view, err := c.cluster.Facts().Detailed(ctx, p)
	if err != nil {
		c.archive.lacks("the status of "+v1alpha2.FullName(p), err)
	} else {
		c.addText(path.Join(folder, "status.txt"), func(printer *cli.Printer) error {
			printer.Tree(tree(view, true))
			return nil
		})
	}

	history, err := c.cluster.Facts().History(ctx, p)
	if err != nil {
		c.archive.lacks("the history of "+v1alpha2.FullName(p), err)
	} else {
		c.addYAML(path.Join(folder, "history.yaml"), history)
	}

	// Pods of a provider that is not installed by a release, such as that of clusterctl, have the label at most.
	label := labels.SelectorFromSet(labels.Set{v1alpha2.ClusterctlProviderLabel: v1alpha2.Label(p)})
	c.collectPods(ctx, folder, p.GetNamespace(), c.managerLogs, append(c.podSelectors(ctx, view.Objects), label)...)
	c.collectEvents(ctx, folder, p.GetNamespace())
}

// explain adds what the operator decides about providers.
func (c *collector) explain(ctx context.Context, selected []v1alpha2.Provider) {
	if len(selected) == 0 {
		return
	}

	planner, err := c.planner.Planner(ctx, c.Options, c.cluster)
	if err != nil {
		c.archive.lacks("what the operator decides", err)
		return
	}
	defer planner.Close()

	run, err := planner.DryRun(ctx)
	if err != nil {
		c.archive.lacks("what the operator decides", err)
		return
	}

	for _, p := range selected {
		c.explainOne(ctx, run, p)
	}
}

func (c *collector) explainOne(ctx context.Context, run *controllers.DryRun, p v1alpha2.Provider) {
	found, err := explain(ctx, run, p, false)
	if err != nil {
		c.archive.lacks("what the operator decides about "+v1alpha2.FullName(p), err)
		return
	}

	why := whyOptions{Options: c.Options, inputs: true}

	c.addText(path.Join(folderOf(p), "why.txt"), func(printer *cli.Printer) error {
		why.print(printer, found)
		return nil
	})
}

// folderOf returns the folder of a provider in the archive.
func folderOf(p v1alpha2.Provider) string {
	return path.Join("providers", p.GetNamespace(), v1alpha2.Label(p))
}

// podState is what the archive has of a pod.
type podState struct {
	Name       string                   `json:"name"`
	Node       string                   `json:"node,omitempty"`
	Phase      corev1.PodPhase          `json:"phase,omitempty"`
	Conditions []corev1.PodCondition    `json:"conditions,omitempty"`
	Init       []corev1.ContainerStatus `json:"initContainers,omitempty"`
	Containers []corev1.ContainerStatus `json:"containers,omitempty"`
}

// podSelectors returns what selects the pods of the workloads among objects. Workloads that do not exist have none.
func (c *collector) podSelectors(ctx context.Context, objects []facts.Object) []labels.Selector {
	var selectors []labels.Selector

	for _, o := range objects {
		workload := &unstructured.Unstructured{}
		workload.SetGroupVersionKind(schema.FromAPIVersionAndKind(o.APIVersion, o.Kind))

		if !health.HasPods(workload) {
			continue
		}

		err := c.cluster.Client.Get(ctx, client.ObjectKey{Namespace: o.Namespace, Name: o.Name}, workload)
		if apierrors.IsNotFound(err) {
			continue
		}

		selector, invalid := health.PodSelector(workload)
		if err := cmp.Or(err, invalid); err != nil {
			c.archive.lacks("the pods of "+o.Kind+" "+o.FullName(), err)
			continue
		}

		selectors = append(selectors, selector)
	}

	return selectors
}

// collectPods adds the states of pods that one of the selectors selects, and their logs if that is asked for.
func (c *collector) collectPods(
	ctx context.Context, folder, namespace string, logs bool, selectors ...labels.Selector,
) {
	var pods []corev1.Pod

	for _, selector := range selectors {
		found := &corev1.PodList{}

		err := c.cluster.Client.List(ctx, found, client.InNamespace(namespace),
			client.MatchingLabelsSelector{Selector: selector}, client.Limit(maxDebugPods))
		if err != nil {
			c.archive.lacks("pods in namespace "+namespace, err)
			return
		}

		pods = append(pods, found.Items...)
	}

	slices.SortFunc(pods, func(a, b corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	pods = slices.CompactFunc(pods, func(a, b corev1.Pod) bool { return a.Name == b.Name })
	states := make([]podState, 0, len(pods))

	for i := range pods {
		pod := &pods[i]
		states = append(states, podState{
			Name: pod.Name, Node: pod.Spec.NodeName, Phase: pod.Status.Phase, Conditions: pod.Status.Conditions,
			Init: pod.Status.InitContainerStatuses, Containers: pod.Status.ContainerStatuses,
		})
	}

	c.addYAML(path.Join(folder, "pods.yaml"), states)

	if !logs {
		return
	}

	for i := range pods {
		c.collectLogs(ctx, folder, &pods[i])
	}
}

// collectLogs adds the logs of a pod's containers, and those of containers that were restarted.
func (c *collector) collectLogs(ctx context.Context, folder string, pod *corev1.Pod) {
	for _, s := range pod.Status.ContainerStatuses {
		name := path.Join(folder, "logs", pod.Name+"_"+s.Name)

		if s.RestartCount > 0 {
			c.collectLog(ctx, name+"_previous.txt", pod, s.Name, true)
		}

		c.collectLog(ctx, name+".txt", pod, s.Name, false)
	}
}

func (c *collector) collectLog(ctx context.Context, name string, pod *corev1.Pod, container string, previous bool) {
	lines := maxLogLines
	options := &corev1.PodLogOptions{Container: container, Previous: previous, TailLines: &lines}

	log, err := c.pods.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, options).Stream(ctx)
	if err != nil {
		c.archive.lacks(name, err)
		return
	}
	defer log.Close()

	// The server cuts a log at its end, so the limit is applied here.
	content, err := lastBytes(log, maxLogBytes)
	if err != nil {
		c.archive.lacks(name, err)
		return
	}

	c.archive.add(name, content)
}

// lastBytes returns the last bytes of what a reader has.
func lastBytes(r io.Reader, limit int64) ([]byte, error) {
	var content bytes.Buffer

	for {
		n, err := io.CopyN(&content, r, limit)

		content.Next(max(0, content.Len()-int(limit)))

		if n < limit || err != nil {
			return content.Bytes(), ignoreEOF(err)
		}
	}
}

func ignoreEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}

	return err
}

// collectEvents adds the newest events of a namespace.
func (c *collector) collectEvents(ctx context.Context, folder, namespace string) {
	found := &corev1.EventList{}

	if err := c.cluster.Client.List(ctx, found, client.InNamespace(namespace)); err != nil {
		c.archive.lacks("events in namespace "+namespace, err)
		return
	}

	events := make([]debugEvent, 0, len(found.Items))

	for i := range found.Items {
		e := &found.Items[i]
		events = append(events, debugEvent{facts.NewEvent(e), e.InvolvedObject.Kind + "/" + e.InvolvedObject.Name})
	}

	slices.SortStableFunc(events, func(a, b debugEvent) int { return a.Time.Compare(b.Time.Time) })

	if left := len(events) - maxDebugEvents; left > 0 {
		c.archive.lacks(fmt.Sprintf("the %d oldest events in namespace %s", left, namespace), nil)
		events = events[left:]
	}

	c.addText(path.Join(folder, "events.txt"), func(printer *cli.Printer) error {
		rows := make([]cli.Row, 0, len(events))

		for _, e := range events {
			rows = append(rows, cli.Row{Cells: []string{
				e.Time.UTC().Format(time.RFC3339), e.Type, e.Reason, e.object, e.Message,
			}})
		}

		return printer.Table([]string{"LAST SEEN", "TYPE", "REASON", "OBJECT", "MESSAGE"}, rows)
	})
}

// debugEvent is an event and the object that it is about.
type debugEvent struct {
	facts.Event

	object string
}

// addYAML adds a file with a value.
func (c *collector) addYAML(name string, value any) {
	content, err := yaml.Marshal(value)
	if err != nil {
		c.archive.lacks(name, err)
		return
	}

	c.archive.add(name, content)
}

// addText adds a file with what a function prints.
func (c *collector) addText(name string, print func(*cli.Printer) error) {
	var content bytes.Buffer

	if err := print(&cli.Printer{Writer: &content, Format: cli.FormatTable}); err != nil {
		c.archive.lacks(name, err)
		return
	}

	c.archive.add(name, content.Bytes())
}

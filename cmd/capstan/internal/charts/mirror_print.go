package charts

import (
	"fmt"

	"github.com/capstan-project/capstan/chartgen/mirror"
	"github.com/capstan-project/capstan/cmd/capstan/internal/cli"
	"github.com/capstan-project/capstan/controllers/object"
)

// itemView is an item of a dry run.
type itemView struct {
	Name string `json:"name"`
	Size int64  `json:"size"`
	Note string `json:"note,omitempty"`
}

// printItems prints the items with their sizes. As a table it has the total size, too.
func printItems(printer *cli.Printer, items []*mirror.Item) error {
	views := cli.Map(items, func(i *mirror.Item) itemView { return itemView{i.Name, i.Size, i.Note} })
	rows := cli.Map(views, func(v itemView) cli.Row { return cli.Row{Cells: []string{cli.Size(v.Size), v.Name, v.Note}} })

	total := cli.Size(mirror.TotalSize(items))
	rows = append(rows, cli.Row{Cells: []string{total, "in total; shared layers are counted once"}})

	return printer.Print(views, func() error {
		return printer.Table([]string{"SIZE", "NAME", "NOTE"}, rows)
	})
}

// count returns the numbers of charts and of images.
func count(items []*mirror.Item) (charts, images int) {
	for _, item := range items {
		switch {
		case item.IsSignature():
		case item.IsChart():
			charts++
		default:
			images++
		}
	}

	return charts, images
}

// summary returns the numbers of charts and of images.
func summary(items []*mirror.Item) string {
	charts, images := count(items)

	return fmt.Sprintf("%s and %s", object.Count(charts, "chart"), object.Count(images, "image"))
}

"""Parts of texts that several alerts share: Prometheus templates that name a GPU and where its node stands."""

GPU = (
    "GPU {{ $labels.UUID }} of node {{ $labels.node }}"
    """{{ with printf `last_over_time(gpugauge_device_info{cluster=%q,node=%q,UUID=%q,GPU_I_ID="",adapter=""}[6h])` """
    """$labels.cluster $labels.node $labels.UUID | query }}{{ with first . }} (index {{ .Labels.gpu }}"""
    "{{ with .Labels.pci_bus_id }}, PCI address {{ . }}{{ end }}"
    "{{ with .Labels.serial }}, serial {{ . }}{{ end }}){{ end }}{{ end }}"
)
"""A GPU with what is needed to find and replace it. Six hours back: what a lost GPU was called is needed most."""

PLACE = (
    """{{ with printf "last_over_time(gpugauge_node_info{cluster=%q,node=%q}[6h])" """
    """$labels.cluster $labels.node | query }}{{ with first . }}"""
    "{{ with .Labels.rack }}, rack {{ . }}{{ end }}{{ with .Labels.zone }}, zone {{ . }}{{ end }}{{ end }}{{ end }}"
)
"""Where the node stands, with a comma before it; nothing where its labels do not tell."""

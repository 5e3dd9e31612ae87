// Generated from messages.txt by generate/main.rs; do not edit.

//! The API StreamsGroupTopologyDescriptionUpdate.

use bytestring::ByteString;

use crate::codec::{DecodeError, Decoder, EncodeError, Encoder, Wire};

/// The request of `StreamsGroupTopologyDescriptionUpdate`, version 0, flexible from 0.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StreamsGroupTopologyDescriptionUpdateRequest {
    pub group_id: ByteString,
    pub member_id: ByteString,
    pub topology_epoch: i32,
    pub topology_description: TopologyDescription,
}

impl Wire for StreamsGroupTopologyDescriptionUpdateRequest {
    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self {
            group_id: d.string()?,
            member_id: d.string()?,
            topology_epoch: d.i32()?,
            topology_description: TopologyDescription::decode(d)?,
        };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.string(&self.group_id)?;
        e.string(&self.member_id)?;
        e.i32(self.topology_epoch);
        self.topology_description.encode(e)?;
        e.no_tags();
        Ok(())
    }
}

/// See [`StreamsGroupTopologyDescriptionUpdateRequest::topology_description`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TopologyDescription {
    pub subtopologies: Vec<TopologyDescriptionSubtopology>,
    pub global_stores: Vec<TopologyDescriptionGlobalStore>,
}

impl Wire for TopologyDescription {
    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self { subtopologies: d.array()?, global_stores: d.array()? };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.array(&self.subtopologies)?;
        e.array(&self.global_stores)?;
        e.no_tags();
        Ok(())
    }
}

/// See [`TopologyDescription::subtopologies`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TopologyDescriptionSubtopology {
    pub subtopology_id: ByteString,
    pub nodes: Vec<TopologyDescriptionNode>,
}

impl Wire for TopologyDescriptionSubtopology {
    fn min_size(_: i16, _: bool) -> usize {
        3
    }

    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self { subtopology_id: d.string()?, nodes: d.array()? };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.string(&self.subtopology_id)?;
        e.array(&self.nodes)?;
        e.no_tags();
        Ok(())
    }
}

/// See [`TopologyDescriptionSubtopology::nodes`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TopologyDescriptionNode {
    pub name: ByteString,
    pub node_type: i8,
    pub source_topics: Vec<ByteString>,
    pub sink_topic: Option<ByteString>,
    pub stores: Vec<ByteString>,
    pub successors: Vec<ByteString>,
}

impl Wire for TopologyDescriptionNode {
    fn min_size(_: i16, _: bool) -> usize {
        7
    }

    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self {
            name: d.string()?,
            node_type: d.i8()?,
            source_topics: d.array()?,
            sink_topic: d.option_string(true)?,
            stores: d.array()?,
            successors: d.array()?,
        };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.string(&self.name)?;
        e.i8(self.node_type);
        e.array(&self.source_topics)?;
        e.option_string(self.sink_topic.as_deref(), true, "TopologyDescriptionNode::sink_topic")?;
        e.array(&self.stores)?;
        e.array(&self.successors)?;
        e.no_tags();
        Ok(())
    }
}

/// See [`TopologyDescription::global_stores`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TopologyDescriptionGlobalStore {
    pub source: TopologyDescriptionNode,
    pub processor: TopologyDescriptionNode,
}

impl Wire for TopologyDescriptionGlobalStore {
    fn min_size(_: i16, _: bool) -> usize {
        15
    }

    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self {
            source: TopologyDescriptionNode::decode(d)?,
            processor: TopologyDescriptionNode::decode(d)?,
        };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        self.source.encode(e)?;
        self.processor.encode(e)?;
        e.no_tags();
        Ok(())
    }
}

/// The response of `StreamsGroupTopologyDescriptionUpdate`, version 0, flexible from 0.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StreamsGroupTopologyDescriptionUpdateResponse {
    pub throttle_time_ms: i32,
    pub error_code: i16,
    pub error_message: Option<ByteString>,
}

impl Wire for StreamsGroupTopologyDescriptionUpdateResponse {
    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value =
            Self { throttle_time_ms: d.i32()?, error_code: d.i16()?, error_message: d.option_string(true)? };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.i32(self.throttle_time_ms);
        e.i16(self.error_code);
        e.option_string(
            self.error_message.as_deref(),
            true,
            "StreamsGroupTopologyDescriptionUpdateResponse::error_message",
        )?;
        e.no_tags();
        Ok(())
    }
}

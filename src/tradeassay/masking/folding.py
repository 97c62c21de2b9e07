"""One letter for all that look like it: full-width, styled, accented, Cyrillic and Greek; traditional Chinese.

Every sign is replaced by exactly one, so that places in a folded text are places in the text.
"""

from __future__ import annotations

import unicodedata

_LOOK = (
    "АA ВB ЕE КK МM НH ОO РP СC ТT ХX УY ІI ЈJ ЅS аa еe оo рp сc хx уy іi јj ѕs һh ԁd ԛq ԝw ӏl "
    "ΑA ΒB ΕE ΖZ ΗH ΙI ΚK ΜM ΝN ΟO ΡP ΤT ΥY ΧX οo αa νv ιi κk ρp υu "
    "ᴀA ʙB ᴄC ᴅD ᴇE ꜰF ɢG ʜH ɪI ᴊJ ᴋK ʟL ᴍM ɴN ᴏO ᴘP ʀR ꜱS ᴛT ᴜU ᴠV ᴡW ʏY ᴢZ ıi łl ŁL øo ØO đd ĐD "
    "‐- ‑- ‒- –- —- ―- −- ’' ‘' ʼ' ′'"
)
_TRADITIONAL = (
    "貴贵 臺台 䑓台 寧宁 時时 萬万 銀银 華华 業业 東东 國国 電电 團团 長长 興兴 發发 證证 險险 陽阳 陸陆 "
    "聯联 訊讯 軟软 網网 藥药 醫医 療疗 產产 農农 鋼钢 鐵铁 銅铜 鋁铝 礦矿 氣气 輪轮 車车 馬马 龍龙 鳳凤 "
    "鷹鹰 馳驰 達达 運运 遠远 進进 連连 邁迈 創创 劑剂 動动 務务 勝胜 區区 衛卫 廣广 廠厂 島岛 嶺岭 崗岗 "
    "幣币 幹干 應应 態态 慶庆 愛爱 戰战 戶户 擬拟 數数 書书 條条 來来 極极 構构 樓楼 標标 機机 權权 歐欧 "
    "歲岁 歷历 殼壳 毀毁 漢汉 漿浆 濟济 濱滨 瀾澜 瀘泸 滬沪 滙汇 匯汇 潔洁 熱热 營营 爾尔 牆墙 獎奖 環环 "
    "瑪玛 瓊琼 畫画 異异 監监 盤盘 碼码 確确 礎础 禮礼 種种 稅税 穩稳 競竞 節节 築筑 範范 糧粮 紅红 紀纪 "
    "約约 純纯 紙纸 級级 納纳 細细 終终 組组 結结 絕绝 給给 統统 經经 綠绿 維维 緊紧 線线 練练 縣县 績绩 "
    "織织 繼继 續续 羅罗 義义 習习 聖圣 聲声 職职 腦脑 膠胶 臨临 與与 舊旧 艦舰 蘇苏 蘭兰 藍蓝 虧亏 號号 "
    "術术 補补 裝装 製制 複复 視视 覽览 觀观 計计 訂订 記记 設设 許许 評评 詞词 試试 話话 該该 認认 語语 "
    "誠诚 誤误 說说 課课 調调 談谈 請请 論论 諾诺 講讲 識识 譯译 議议 護护 變变 讓让 豐丰 貝贝 財财 貨货 "
    "責责 貸贷 費费 資资 賣卖 賽赛 購购 贏赢 軍军 軌轨 較较 載载 輕轻 輸输 辦办 適适 選选 郵邮 鄉乡 釀酿 "
    "針针 鈉钠 鈦钛 鉀钾 銷销 鋒锋 錢钱 錦锦 錫锡 鋰锂 鍋锅 鎖锁 鎮镇 鏡镜 門门 開开 間间 閃闪 關关 際际 "
    "階阶 隨随 隱隐 雙双 雜杂 難难 雲云 靈灵 靜静 響响 頁页 項项 順顺 須须 領领 頭头 題题 額额 顧顾 風风 "
    "飛飞 飯饭 飲饮 飼饲 館馆 駕驾 駛驶 騰腾 驗验 體体 魯鲁 鮮鲜 鹽盐 麗丽 麥麦 黃黄 點点 齊齐 齒齿 滄沧 "
    "濰潍 晉晋 贛赣 粵粤 閩闽 滿满 灣湾 價价 億亿 優优 會会 傳传 備备 儀仪 兩两 內内 冊册 凱凯 劃划 劉刘 "
    "勁劲 勞劳 參参 單单 喬乔 圖图 場场 壓压 壽寿 學学 實实 寶宝 將将 對对 層层 巖岩 師师 帶带 庫库 張张 "
    "強强 彈弹 後后 從从 復复 恆恒 懷怀 專专 換换 擴扩 擔担 據据 攝摄 敗败 斷断 於于 晝昼 曉晓 榮荣 樂乐 "
    "樣样 橋桥 檢检 歡欢 殺杀 氫氢 決决 況况 測测 湯汤 準准 溝沟 濕湿 無无 煙烟 爭争 狀状 獨独 現现 當当 "
    "疊叠"
)


class _Folding(dict[int, int]):
    """A table for ``str.translate`` that works out a sign when it is first met."""

    def __missing__(self, code: int) -> int:
        self[code] = found = _plain(code)
        return found


def _plain(code: int) -> int:
    if code < 128:
        return code
    same = unicodedata.normalize("NFKC", chr(code))
    bare = unicodedata.normalize("NFD", same)
    first = bare[0]
    accented = first.isascii() and first.isalpha() and all(map(unicodedata.combining, bare[1:]))
    return ord(first) if accented else ord(same) if len(same) == 1 else code


FOLD = _Folding({ord(pair[0]): ord(pair[1]) for pair in (_LOOK + " " + _TRADITIONAL).split()})
"""What ``str.translate`` needs to fold a text."""
